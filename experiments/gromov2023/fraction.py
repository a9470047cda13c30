"""When both splits are learnt, against the share of pairs that is trained and against weight
decay.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .grokking import ADAMW, GD, KEYS, NO_DECAY, SIZES, Grokking, grokking

SHARES = {ADAMW: (0.2, 0.3, 0.4, 0.5, 0.6, 0.7), GD: (0.3, 0.5, 0.6, 0.7)}
"""Optimizer -> shares of the pairs."""
FEWER = {ADAMW: (0.05, 0.1), GD: (0.1, 0.2)}
"""Besides them in the preset `full`: the critical share falls with p."""
DECAYS = (0.0, 1.0, 15.0)
"""At one half of the pairs, beside the 5 of the others."""
CONFIG = {
    ADAMW: ("gromov2023/adamw.yaml", "optimizer.iterations=1000"),
    GD: ("gromov2023/addition.yaml", "optimizer.iterations=2000"),
}


@dataclass(frozen=True)
class Evidence:
    """Runs by optimizer and share, and by decay."""

    shares: dict[str, dict[float, Grokking]]
    decays: dict[float, Grokking]


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs: `shares` by optimizer and share, `decays` by decay."""

    def of(role: str) -> dict[float, Grokking]:
        return {value: grokking(run) for value, run in kit.by_values(runs, role).items()}

    shares = {name: dict(sorted(of(f"{name} {{}}").items())) for name in SHARES}
    decays = {**of("decay {:g}"), 5.0: shares[ADAMW][0.5]}
    return Evidence(shares=shares, decays=dict(sorted(decays.items())))


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare: below some share nothing generalises, above it the sooner the more pairs are
    trained.
    """
    made = []

    for name, of in e.shares.items():
        key = KEYS[name]
        times = np.array([run.t_test for run in of.values()])
        late = times[np.isfinite(times)]
        least = next(iter(of))
        made += [
            kit.claim(
                f"{key}-few",
                f"{name}: of few pairs ({least:.0%}) all are learnt, and most others are not "
                "(final test accuracy)",
                "critical share (recalled)",
                kit.less_than(0.5),
                of[least].test[-1] if np.isfinite(of[least].t_train) else np.nan,
            ),
            kit.claim(
                f"{key}-sooner",
                f"{name}: the more pairs, the sooner the others are learnt (share of "
                "successive shares where they are)",
                "critical share (recalled)",
                kit.exactly(1),
                np.mean(np.diff(late) < 0) if len(late) > 1 else np.nan,
            ),
        ]

    return made


def draw(e: Evidence) -> kit.Drawing:
    return kit.charts(
        kit.chart(
            "When learnt",
            "epoch learnt",
            [
                kit.line([*of], [run.t_train for run in of.values()], look="joined dotted .")
                for of in e.shares.values()
            ],
            [
                kit.line([*of], [run.t_test for run in of.values()], name, "joined")
                for name, of in e.shares.items()
            ],
            kit.entry("training pairs", "muted joined dotted ."),
            log="y",
            limits=(4, 2000),
        ),
        kit.chart(
            "Final accuracy",
            "final test accuracy",
            [
                kit.line([*of], [run.test[-1] for run in of.values()], look="joined")
                for of in e.shares.values()
            ],
        ),
        kit.chart(
            "AdamW, one half",
            "test accuracy",
            *(
                kit.line(run.epochs[1:], run.test[1:], f"decay {value:g}", f"C{k}")
                for k, (value, run) in enumerate(e.decays.items(), 2)
            ),
            xlabel="epoch",
            log="x",
        ),
        xlabel="share trained",
        limits=(-0.03, 1.05),
    )


def _wanted(*sizes: str) -> dict[str, kit.Wanted]:
    fraction = "dataset.train_fraction"
    step = ("optimizer.lr=5.155",) if sizes else ()
    wanted: dict[str, kit.Wanted] = {}
    for name, (config, *count) in CONFIG.items():
        shares = {fraction: (*(FEWER[name] if sizes else ()), *SHARES[name])}
        own = step if name == GD else ()
        wanted |= kit.grid(config, shares, name + " {}", *sizes, *own, *count)
    config, *count = CONFIG[ADAMW]
    decays = {"optimizer.weight_decay": DECAYS}
    return wanted | kit.grid(config, decays, "decay {:g}", *sizes, *count, f"{fraction}=0.5")


FIGURE = kit.Figure(
    id="gromov2023-fraction",
    caption=(
        "Addition modulo p. Left: epoch at which training pairs (dotted) and test pairs are learnt"
        " against the share that is trained. Middle: final test accuracy. Right: test accuracy"
        " under AdamW of several weight decays."
    ),
    passes={
        "slow": {
            "adamw-few": (
                "With a hundredth of the step few pairs are memorised within the run, and the rule"
                " is not learnt."
            )
        },
        "random_features": {
            "adamw-few": "Output weights alone memorise few pairs, and do not learn the rule."
        },
        "decay": {"gd-*": NO_DECAY},
    },
    configs=_wanted(),
    presets={"full": _wanted(*SIZES)},
)
