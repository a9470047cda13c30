"""Figure 1a and 1b: singular values of a factor along training; gradient descent learns one after
the other, Muon all at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

from .theory.factors import descent, growing_parts

GD = "rhee2026/gd.yaml"
MUON = "rhee2026/muon.yaml"
MODES = (1, 2, 3, 10)
"""The modes of the claims."""
WITHIN = 0.02
"""Relative tolerance of a time; a step of Muon is 0.5 % of the smallest of four times."""


@dataclass(frozen=True)
class Trained:
    """Singular values (K, r) of the second factor at iterations `at` (K,), descending, and their
    limits by theory `ends` (r,), the square roots of the target's.
    """

    at: kit.Ints
    values: kit.Floats
    ends: kit.Floats
    step: float

    def chosen(self) -> list[tuple[kit.Floats, float]]:
        """Return values (K,) and limit of each mode of the claims."""
        return [(self.values[:, i - 1], float(self.ends[i - 1])) for i in MODES]


def trained(run: kit.Run) -> Trained:
    """Read a run of two factors."""
    data: Any = run.config.dataset
    optimizer: Any = run.config.optimizer
    (second,) = kit.recorded(run, "weight_2")
    return Trained(
        run.snapshot_iterations,
        kit.singular_values(second),
        np.sqrt(data.singular_values),
        optimizer.lr,
    )


@dataclass(frozen=True)
class Evidence:
    """Both runs, and the times of the modes of the claims, NaN where there are none.

    Gradient descent is at half a mode when the product is, `half` (4,), and so is the scalar law,
    `half_law` (4,), whose factors are `law` (K, r). A mode of Muon stops, `stops` (4,), when it
    first is within a step of its mean over the last tenth of the states; `settled` (4,) are these
    means over the limits. `together` and `apart` are mode 10 over mode 1: of Muon half way to the
    stop of mode 10, of gradient descent half way through mode 1.
    """

    gd: Trained
    muon: Trained
    law: kit.Floats
    half: kit.Floats
    half_law: kit.Floats
    stops: kit.Floats
    settled: kit.Floats
    last_stop: float
    together: float
    apart: float

    @property
    def stops_law(self) -> kit.Floats:
        """Updates (4,) after which modes of Muon stop by the scalar law."""
        return np.array([end for _, end in self.muon.chosen()]) / self.muon.step


def evidence(runs: kit.Runs) -> Evidence:
    """Measure both runs, and iterate the scalar law from the weights that descent begins with."""
    gd = trained(runs["gd"])
    muon = trained(runs["muon"])
    law = descent(_start(runs["gd"]), gd.ends**2, gd.step, int(gd.at[-1]))[gd.at]
    exact = Trained(gd.at, law, gd.ends, gd.step)
    half = _half_times(gd)

    tail = slice(-max(1, len(muon.at) // 10), None)
    means = muon.values[tail].mean(0)
    stops = [
        kit.first_at(muon.at, v >= mean - muon.step)
        for v, mean in zip(muon.values.T, means, strict=True)
    ]
    places = np.array(MODES) - 1
    middle = muon.ends[9] / muon.step / 2
    return Evidence(
        gd=gd,
        muon=muon,
        law=law,
        half=half,
        half_law=_half_times(exact),
        stops=np.array(stops)[places],
        settled=(means / muon.ends)[places],
        last_stop=stops[-1],
        together=_tenth_over_first(muon, middle),
        apart=_tenth_over_first(gd, half[0]),
    )


def _start(run: kit.Run) -> kit.Floats:
    """Return the factors (r,) from which the scalar law begins."""
    samples = run.dataset()
    U, _, Vt = np.linalg.svd(samples.y.T @ samples.x)
    weights = kit.in_double(run.state(0))
    return growing_parts(weights["weight_1"], weights["weight_2"], U, Vt.T)


def _half_times(run: Trained) -> kit.Floats:
    """Return when the product of each mode of the claims is half its target."""
    return np.array(
        [kit.crossing(run.at, values, end / np.sqrt(2)) for values, end in run.chosen()]
    )


def _tenth_over_first(run: Trained, time: float) -> float:
    """Return mode 10 over mode 1 at a time, NaN where the run does not reach it."""
    if not time <= run.at[-1]:
        return np.nan
    first, tenth = (kit.value_at(run.at, run.values[:, i], time) for i in (0, 9))
    return tenth / first


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with the pictures and the scalar laws of both optimizers."""
    ends = kit.farthest(e.settled)
    stopped = abs(ends - 1) <= WITHIN
    # the steps of a flow that turns around spiral outwards, the strongest mode first
    learned = abs(e.gd.values[-1, 0] / e.gd.ends[0] - 1) < 0.1
    return [
        *[
            kit.claim(
                f"muon-stop-{i}",
                rf"Muon: mode {i} stops after $\sqrt{{s_i}}/\eta$ updates",
                "Figure 1b; scalar law, within 2 %",
                kit.near(expected, WITHIN * expected),
                stop,
            )
            for i, expected, stop in zip(MODES, e.stops_law, e.stops, strict=True)
        ],
        kit.claim(
            "muon-end",
            r"Muon: the modes stay where they stop, at $\sqrt{s_i}$ (mean over the last tenth of"
            " training over it, the farthest of four)",
            "Figure 1b; scalar law, within 2 %",
            kit.near(1, WITHIN),
            ends,
        ),
        kit.claim(
            "muon-order",
            "Muon: the weaker a mode, the earlier it stops (of modes 2, 3 and 10, those before the"
            " stronger)",
            "abstract; Figure 1b",
            kit.exactly(len(MODES) - 1),
            np.sum(np.diff(e.stops) < 0),
        ),
        kit.claim(
            "muon-together",
            "Muon: all modes grow at the same rate, along a single line (mode 10 over mode 1, half"
            " way to the stop of mode 10)",
            "abstract; Figure 1b",
            kit.around(1),
            kit.given(stopped, e.together),
        ),
        kit.claim(
            "gd-order",
            "Gradient descent: the stronger a mode, the earlier it is learned (of modes 2, 3 and"
            " 10, those half learned later than the stronger)",
            "Figure 1a",
            kit.exactly(len(MODES) - 1),
            kit.given(learned, np.sum(np.diff(e.half) > 0)),
        ),
        kit.claim(
            "gd-apart",
            "Gradient descent: modes grow one after the other (mode 10 over mode 1 when mode 1 is"
            " half learned; a tenth is our reading)",
            "Figure 1a; abstract: slow saddle-to-saddle dynamics",
            kit.less_than(0.1),
            kit.given(learned and np.isfinite(e.half).all(), e.apart),
        ),
        kit.claim(
            "gd-half",
            "Gradient descent: modes are half learned when the scalar law says, from the initial"
            " weights less what stronger modes take of the hidden space (ratio, the farthest of"
            " four)",
            "scalar law",
            kit.around(1),
            kit.farthest(e.half / e.half_law),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return the times of the modes of both optimizers."""
    times = {}
    for k, i in enumerate(MODES):
        times[f"updates until mode {i} is half learned by gradient descent"] = e.half[k]
    times["stop of mode 32 of Muon, in updates"] = e.last_stop
    times["stop of mode 32 by the scalar law"] = e.muon.ends[-1] / e.muon.step
    return times


def draw(e: Evidence) -> kit.Drawing:
    stops = np.minimum(e.muon.at[:, None] * e.muon.step, e.muon.ends)
    chosen = np.array(MODES) - 1
    rows = (("Gradient descent", e.gd, e.law), ("Muon", e.muon, stops))
    return kit.charts(
        *(
            kit.chart(
                title,
                r"singular values of $W_2$",
                kit.line(run.at, run.values, look="faint"),
                kit.lines(
                    run.at, dict(zip(MODES, run.values.T[chosen], strict=True)), "mode {}", "1.6"
                ),
                kit.lines(run.at, law[:, chosen], "scalar law", "theory dashed 0.8"),
            )
            for title, run, law in rows
        )
    )


LEAVES = "It is about gradient descent, which this null leaves."
FIGURE = kit.Figure(
    id="rhee2026-modes",
    caption=(
        "Singular values of the second of two factors that learn a matrix of singular values 10/i,"
        " along gradient descent and along Muon; grey: the other modes. Dashed: scalar laws; for"
        " gradient descent each mode begins with its initial weights less the part in the hidden"
        " space that stronger modes take (a QR decomposition)."
    ),
    configs={"gd": GD, "muon": MUON},
    nulls={
        "gd": ("optimizer={kind: gd, lr: 5.0e-3, iterations: 1000}",),
        "iterations": (
            "optimizer={kind: muon, lr: 5.0e-3, momentum: 0.0, nesterov: false, iterations: 1000}",
        ),
    },
    passes={
        "gd": {"gd-*": LEAVES},
        "iterations": {"muon-order": "Steps of about a size for all modes are enough for it."},
    },
)
