"""Figure 2: test loss against the width for two scalings of the output, and SGD on fresh samples
by scale.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

POWERS = {"1/sqrt(m)": 0.5, "1/m": 1.0}
WIDTHS = (4, 16, 64)
MORE_WIDTHS = (2, 3, 6, 8, 12, 24, 32, 128, 256, 512)
TAUS = (0.1, 0.3, 1.0)
MORE_TAUS = (
    0.01,
    0.02,
    0.04,
    0.1259,
    0.1585,
    0.1995,
    0.2512,
    0.3981,
    0.5012,
    0.631,
    0.7943,
    2.0,
    4.0,
    8.0,
)
"""Of `--preset full`, with the others those of the paper."""
WIDTH = "{}, m = {}"
ONLINE = "SGD, tau = {:g}"
"""Roles of the runs."""
LABELS = 100.0
"""What labels of Figure 2a are multiplied by."""
TARGET = 200.0
"""and those of Figure 2c divided by."""
LAST = 1000
"""Iterations over which the loss of SGD is averaged."""


FITTED = 0.1
"""Share of the first loss, or of that of the zero function, below which a network counts as
trained.
"""


@dataclass(frozen=True)
class Evidence:
    """Final losses against the width and the scale."""

    widths: kit.Floats
    test: dict[str, kit.Floats]
    null: float
    taus: kit.Floats
    online: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Read the final losses in units of our labels: `test` by scaling (M,), NaN where untrained,
    and `online` (T,).
    """
    test: dict[str, dict[int, float]] = {name: {} for name in POWERS}
    online: dict[float, float] = {}
    null = np.nan
    for (name, m), run in kit.by_values(runs, WIDTH).items():
        samples = run.dataset()
        assert samples.y_test is not None
        fitted = run.final_loss < FITTED * run.losses[0]
        test[name][m] = kit.given(fitted, run.measures["test_loss"][-1])
        null = 0.5 * float(np.mean(samples.y_test**2))
    for tau, run in kit.by_values(runs, ONLINE).items():
        late = run.loss_iterations > run.iterations - LAST
        online[tau] = float(np.mean(run.losses[late]) / (0.5 * np.mean(run.dataset().y ** 2)))
    widths = sorted(test["1/m"])
    taus = sorted(online)
    return Evidence(
        widths=np.array(widths),
        test={name: np.array([of[m] for m in widths]) for name, of in test.items()},
        null=null,
        taus=np.array(taus),
        online=np.array([online[tau] for tau in taus]),
    )


def claims(e: Evidence) -> list[kit.Claim]:
    ratio = dict(zip(e.widths.tolist(), e.test["1/m"] / e.test["1/sqrt(m)"], strict=True))
    online = dict(zip(e.taus.tolist(), e.online, strict=True))
    learnt = online[0.1] < FITTED  # before, all scales are on their way
    return [
        *(
            kit.claim(
                f"width-{m}",
                r"Networks times 1/m generalise better than lazy networks times $1/\sqrt m$ "
                f"(held-out loss over theirs where both fit, m = {m})",
                "Figure 2(a)",
                kit.less_than(1),
                ratio[m],
            )
            for m in WIDTHS[1:]
        ),
        kit.claim(
            "online",
            r"SGD on fresh samples ends higher in the lazy regime (loss at $\tau$ = 1 over that at "
            "0.1)",
            "Figure 2(c)",
            kit.more_than(1),
            kit.given(learnt, online[1.0] / online[0.1]),
        ),
        kit.claim(
            "rises",
            r"The loss of SGD on fresh samples is the higher, the larger $\tau$ (share of larger "
            r"$\tau$ with more, 0.1 to 1)",
            "Figure 2(c)",
            kit.exactly(1),
            kit.given(learnt, np.mean(np.diff([online[tau] for tau in TAUS]) > 0)),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    scale = 0.1 * LABELS**2
    root = r"output times $1/\sqrt{m}$"
    return kit.charts(
        kit.chart(
            "Width",
            r"held-out loss $\times\,0.1$",
            kit.line(e.widths, scale * e.test["1/sqrt(m)"], root, "theory joined"),
            kit.line(e.widths, scale * e.test["1/m"], "output times $1/m$", "muted joined"),
            kit.level(scale * e.null, "zero function", "theory dotted 0.9"),
            xlabel="width $m$",
            ticks=WIDTHS,
        ),
        kit.chart(
            "Fresh samples",
            "loss of SGD / largest",
            kit.line(e.taus, e.online / e.online.max(), look="C2 joined"),
            xlabel=r"scale $\tau$",
        ),
        log="xy",
    )


def _widths(name: str, widths: Iterable[int], *more: str) -> dict[str, kit.Wanted]:
    power = POWERS[name]
    speed = 1.0 if power == 0.5 else 0.05

    def scale(m: int) -> float:  # the weights carry it: networks of degree 2
        return float(m**-power)

    return kit.grid(
        "chizat2019/width.yaml",
        {"architecture.width": widths},
        name + ", m = {}",
        lambda m: f"initialization.scale={(scale(m) / LABELS) ** 0.5!r}",
        lambda m: f"optimizer.lr={LABELS * (speed / m) / scale(m)!r}",  # released
        *more,
    )


def _online(taus: Iterable[float], *more: str) -> dict[str, kit.Wanted]:
    wanted = {}
    for tau in taus:
        lr = 50 * min(0.25 / tau**2, 25.0) / TARGET  # times m: the released gradient is without 1/m
        changes = (f"initialization.scale={tau * TARGET**0.5!r}", f"optimizer.lr={lr!r}", *more)
        wanted[ONLINE.format(tau)] = kit.Wanted("chizat2019/online.yaml", changes)
    return wanted


FIGURE = kit.Figure(
    id="chizat2019-fig2",
    caption=(
        "Left: held-out loss of networks times 1/sqrt(m), which are lazy when they are wide, and"
        " times 1/m, against the width m, labels times 100. Right: loss in the end of stochastic"
        " gradient descent on fresh samples against the scale tau of the start."
    ),
    configs={**_widths("1/sqrt(m)", WIDTHS), **_widths("1/m", WIDTHS), **_online(TAUS)},
    presets={
        "full": {
            **_widths("1/sqrt(m)", (*WIDTHS, *MORE_WIDTHS), "optimizer.iterations=25000"),
            **_widths("1/m", (*WIDTHS, *MORE_WIDTHS), "optimizer.iterations=25000"),
            **_online((*TAUS, *MORE_TAUS), "optimizer.iterations=20000"),
        }
    },
)
