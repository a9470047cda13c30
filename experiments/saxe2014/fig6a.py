"""Figure 6A: iterations against depth, deep linear networks from orthogonal and from Gaussian
weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

DEPTHS = (2, 4, 8, 16)
MORE_DEPTHS = (3, 6, 12, 32, 64)
"""Matrices; the second ones of `--preset full`, the deepest two from orthogonal weights alone."""
LEFT = 0.01
"""Share of the loss of the zero network that ends a run."""
START = {"orthogonal": "initialization.kind=orthogonal", "Gaussian": "initialization.kind=lecun"}
STEPS: dict[str, dict[int, tuple[float, ...]]] = {
    "orthogonal": dict.fromkeys((*DEPTHS, *MORE_DEPTHS), (0.5, 1.0, 1.5)),
    "Gaussian": {
        2: (0.3, 0.6, 1.0),
        3: (0.6, 0.8, 1.0),
        4: (0.6, 0.8, 1.0),
        6: (0.4, 0.6, 0.8),
        **dict.fromkeys((8, 12, 16), (0.2, 0.4, 0.6)),
    },
}
"""Start -> depth n -> steps that are tried, in units of 1/n; slightly larger steps diverge from
some Gaussian draws.
"""


@dataclass(frozen=True)
class Start:
    """The best step of every depth from one law of the weights.

    `iterations` (D,) to 1 % of the loss of the zero network, infinite where no step gets there, of
    the matrices `depths` (D,), ascending; `losses` (T,) of the deepest of `DEPTHS` over the zero
    network's.
    """

    depths: kit.Ints
    iterations: kit.Floats
    losses: kit.Floats


def evidence(runs: kit.Runs) -> dict[str, Start]:
    """Find the best step of every depth, from either law of the weights."""
    by_start = {}
    for start in START:
        best: dict[int, tuple[float, kit.Floats]] = {}
        for role, run in runs.items():
            if not role.startswith(start):
                continue
            losses = run.losses / (0.5 * np.mean(np.sum(run.dataset().y ** 2, axis=1)))
            took = np.nan_to_num(kit.first_at(run.loss_iterations, losses <= LEFT), nan=np.inf)
            depth = len(run.config.architecture.widths) + 1  # type: ignore[attr-defined]
            if depth not in best or took < best[depth][0]:
                best[depth] = (took, losses)
        depths = sorted(best)
        by_start[start] = Start(
            depths=np.array(depths),
            iterations=np.array([best[n][0] for n in depths]),
            losses=best[DEPTHS[-1]][1],
        )
    return by_start


def growth(run: Start, n: int) -> float:
    """Return how much longer n matrices take than n/2."""
    (long,), (short,) = (run.iterations[run.depths == depth] for depth in (n, n // 2))
    return float(long / short)


def claims(e: Mapping[str, Start]) -> list[kit.Claim]:
    """Compare with Figure 6A: depth costs nothing from orthogonal weights, and much from
    Gaussian ones.
    """
    orthogonal, gaussian = e.values()
    longer = [run.iterations[np.isin(run.depths, DEPTHS[1:])] for run in (gaussian, orthogonal)]
    return [
        kit.claim(
            "flat",
            "From orthogonal weights depth costs hardly an iteration (16 matrices over 8)",
            "Figure 6A; range ours, Figure 4's",
            kit.less_than(1.25),
            growth(orthogonal, 16),
        ),
        kit.claim(
            "grows",
            "From scaled Gaussian weights the learning time grows with depth (16 matrices over 8)",
            "Figure 6A; range ours, Figure 4's",
            kit.more_than(1.25),
            growth(gaussian, 16),
        ),
        kit.claim(
            "sooner",
            "Orthogonal weights learn sooner (least ratio, Gaussian over orthogonal, 4 to 16"
            " matrices)",
            "Figure 6A",
            kit.more_than(1),
            np.min(longer[0] / longer[1]),
        ),
    ]


def draw(e: Mapping[str, Start]) -> kit.Drawing:
    runs = e.values()
    return kit.charts(
        kit.chart(
            "Best step",
            "iterations",
            [
                kit.line(run.depths, run.iterations, f"{name} weights", "joined")
                for name, run in e.items()
            ],
            xlabel="matrices $n$",
            ticks=next(iter(runs)).depths,
            limits=(1, None),
        ),
        kit.chart(
            f"$n = {DEPTHS[-1]}$; dotted: 1 %",
            "loss / zero network's",
            [kit.line(1, run.losses[1:]) for run in runs],
            kit.level(LEFT, look="theory dotted 0.8"),
        ),
        log="xy",
    )


def _wanted(depths: tuple[int, ...]) -> dict[str, kit.Wanted]:
    return {
        f"{start}, n = {n}, step {c:g}/n": kit.Wanted(
            "saxe2014/depth.yaml",
            (START[start], f"architecture.widths={[32] * (n - 1)}", f"optimizer.lr={c / n!r}"),
        )
        for start in START
        for n in depths
        for c in STEPS[start].get(n, ())
    }


FIGURE = kit.Figure(
    passes={
        "early": {
            "flat sooner": "Orthogonal networks learn within the first hundredth of the run."
        },
        "slow": {
            "flat sooner": (
                "With a hundredth of the step orthogonal networks still learn within the run, and"
                " first."
            )
        },
        "random_features": {
            "flat sooner grows": (
                "The matrices behind a fixed first one learn the map, and their depth matters as"
                " before."
            )
        },
    },
    id="saxe2014-fig6a",
    caption=(
        "Linear networks of n matrices on whitened inputs, from random orthogonal and from scaled"
        " Gaussian weights. Left: iterations to 1 % of the loss of the zero network, at the best of"
        " some steps. Right: losses of 16."
    ),
    configs=_wanted(DEPTHS),
    presets={"full": _wanted(MORE_DEPTHS)},
)
