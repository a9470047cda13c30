"""Separate keys and queries of rank one: the loss drops D times, from saddle to saddle, an
eigenvector at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.runs.replica import replicas_of

from .theory.population import descent, moments, rise, saddle_losses, setting, strengths

CONFIG = "zhang2025/separate.yaml"
PRINTED = (1.0, 0.64057971, 0.37737216, 0.2098046, 0.13599507)
"""L(M_0) to L(M_4) in the output of the released notebook, for D = 4 and N = 31."""
RELEASED = "rank one"
LARGER = "larger start"
SMALL = "smaller start"
LOW = 0.1
HIGH = 0.9
"""Strengths between which the rise of an eigenvector is timed."""


def halves(losses: kit.Floats, levels: kit.Floats) -> kit.Floats:
    """Return the iterations (D,) at which losses (K,), one an iteration, have fallen half way
    between two levels.
    """
    return np.array(
        [
            kit.crossing(np.arange(len(losses)), -losses, -level)
            for level in (levels[1:] + levels[:-1]) / 2
        ]
    )


@dataclass(frozen=True)
class Network:
    """A network of rank one, from drop to drop.

    A rest is a plateau of 1 % of the iterations, and its saddle belongs to the nearest level; drops
    that did not happen have NaN.
    """

    losses: kit.Floats
    eigenvalues: kit.Floats
    predicted: kit.Floats
    levels: kit.Floats
    at: kit.Ints
    s: kit.Floats
    predicted_s: kit.Floats
    drops: kit.Floats
    rests: kit.Floats
    errors: kit.Floats
    late: kit.Floats
    heads: kit.Floats
    axes: kit.Floats
    rises: kit.Floats


Evidence = dict[str, list[Network]]
"""Networks of consecutive seeds, by role."""


def network(run: kit.Run) -> Network:
    """Measure a network: where its loss rests, the strengths there, the heads in the end, and the
    times of its drops.
    """
    covariance, N, step = setting(run)
    eigenvalues, vectors = (np.flip(part, -1) for part in np.linalg.eigh(covariance))
    levels = saddle_losses(eigenvalues, N)
    losses = run.losses
    iterations = run.loss_iterations
    at = run.snapshot_iterations
    P = kit.in_double(run.parameters)
    s = strengths(run.config.architecture.regression(P), covariance, N)  # type: ignore[attr-defined]
    predicted, M = descent(run.state(0), covariance, N, step, iterations)
    drops = halves(losses, levels)
    D = len(drops)
    rests = []
    errors = []
    for plateau in kit.find_plateaus(iterations, losses, minimum_fraction=0.01):
        m = int(np.argmin(np.abs(np.log(levels / plateau.value))))
        rests.append(plateau.value / levels[m])
        middle = np.argmin(np.abs(at - (plateau.first + plateau.last) / 2))
        errors.append(float(np.abs(s[middle] - (np.arange(D) < m)).max()))
    key, query = (
        P[f"weight_{name}"][-1, :, 0] @ vectors for name in ("key", "query")
    )  # (H, D), along eigenvectors
    along = P["weight_value"][-1] * key * query
    heads = along.argmax(0)
    d = np.arange(D)
    cosines = [
        np.abs(weights / np.linalg.norm(weights, axis=1, keepdims=True))[heads, d]
        for weights in (key, query)
    ]
    predicted_s = strengths(M, covariance, N)
    rises = [
        [
            kit.crossing(steps, weights, HIGH) - kit.crossing(steps, weights, LOW)
            for weights in values.T
        ]
        for values, steps in ((s, at), (predicted_s, iterations))
    ]
    return Network(
        losses,
        eigenvalues,
        predicted,
        levels,
        at,
        s,
        predicted_s,
        drops,
        rests=np.array(rests),
        errors=np.array(errors),
        late=drops / halves(predicted, levels),
        heads=along.max(0) / along.sum(0),
        axes=np.minimum(*cosines),
        rises=np.array(rises)
        * step
        / [rise(a, b, LOW, HIGH) for a, b in zip(*moments(eigenvalues, N), strict=True)],
    )


def evidence(runs: kit.Runs) -> Evidence:
    """Measure all networks."""
    return {
        role: [
            network(replica) for replica in (replicas_of(run) if "replicas" in run.info else [run])
        ]
        for role, run in runs.items()
    }


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with the saddles, in-context principal component regression, and the scalar equation
    of a drop.

    Networks that rest at the last saddle but one count with the drops that they had, three at
    least.
    """
    levels = e[RELEASED][0].levels
    D = len(PRINTED) - 1
    rises = e[SMALL][0].rises

    def counts(role: str) -> list[int]:
        return [int(np.isfinite(net.drops).sum()) for net in e[role]]

    def all_of(name: str, role: str = RELEASED, *, rests: bool = False) -> kit.Floats:
        """Return the numbers of all drops, or rests; NaN unless every network had all drops but
        the last.
        """
        pairs = zip(e[role], counts(role), strict=True)
        values = [getattr(net, name)[: None if rests else n] for net, n in pairs]
        return np.concatenate(values) if min(counts(role)) >= D - 1 else np.array([np.nan])

    return [
        *(
            kit.theory(
                f"printed-{m}",
                f"Loss of the saddle with {m} of 4 eigenvectors learnt",
                "released notebook, output of cell 6",
                kit.near(value, 1e-8),
                levels[m],
            )
            for m, value in enumerate(PRINTED)
        ),
        kit.claim(
            "drops",
            "Most networks lose in D = 4 drops within 10 000 updates (share of them that come to"
            " the last level through all others)",
            "released notebook, picture of cell 6; most: more than half",
            kit.most(),
            np.mean(np.array(counts(RELEASED)) == D),
        ),
        kit.claim(
            "levels",
            "Between drops the loss rests at the levels of the saddles (loss over theory, the "
            "farthest)",
            "theory, levels as printed",
            kit.around(1),
            kit.farthest(all_of("rests", rests=True)),
        ),
        kit.claim(
            "principal",
            "At a rest of the loss the network is principal component regression in context:"
            " eigenvectors are learnt wholly or not at all, largest first (largest distance of a"
            " strength from 1 or 0)",
            "abstract; within 10 %",
            kit.at_most(0.1),
            np.max(all_of("errors", rests=True)),
        ),
        kit.claim(
            "heads",
            "From a start half as large each drop is a single head's (least share of a head in an "
            "eigenvector's strength)",
            "reduction to scalar equations; within 10 %",
            kit.around(1),
            np.min(all_of("heads", SMALL)),
        ),
        kit.claim(
            "axes",
            "Key and query of the head that learns are the eigenvector (least cosine)",
            "reduction to scalar equations; within 10 %",
            kit.around(1),
            np.min(all_of("axes", SMALL)),
        ),
        kit.theory(
            "rise",
            "Descent on the population loss from the small start: strengths rise as the scalar"
            " equation says (iterations from 0.1 to 0.9 over its, the farthest)",
            "scalar equations of the abstract",
            kit.around(1),
            kit.farthest(rises[1][np.isfinite(rises[1])]),
        ),
        kit.claim(
            "times",
            "Drops come when descent on the population loss from the same weights says (ratio "
            "of half times, median over all)",
            "theory",
            kit.around(1),
            np.median(all_of("late")),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return how far rises are from the scalar equation's, and the networks with all drops from
    s = 0.02.
    """
    rises = e[SMALL][0].rises[0]
    larger = e.get(LARGER, [])
    return {
        "iterations of a strength from 0.1 to 0.9 over the scalar equation's": kit.farthest(
            rises[np.isfinite(rises)]
        ),
        "networks of three from s = 0.02, twice the released start, that lose in all four drops": (
            sum(bool(np.isfinite(net.drops).all()) for net in larger)
        ),
    }


def draw(e: Evidence) -> kit.Drawing:
    first = e[RELEASED][0]
    name = r"$\lambda = {:.2g}$".format
    return kit.charts(
        *(
            kit.chart(
                title,
                "loss",
                [kit.level(level, "saddles $L(M_m)$", "theory dotted 1") for level in first.levels],
                [kit.line(0, net.losses, "networks", "measured 0.9") for net in e[role]],
                kit.line(0, e[role][0].predicted, "population, first", "C1 dashed 0.9"),
                limits=(0, 1.1),
            )
            for title, role in (("Loss, $s = 0.01$", RELEASED), ("Loss, $s = 0.02$", LARGER))
        ),
        kit.chart(
            "Strengths",
            "strength",
            kit.lines(first.at, dict(zip(map(name, first.eigenvalues), first.s.T, strict=True))),
            kit.lines(0, first.predicted_s, "", "dashed 0.9"),
            limits=(-0.1, 1.2),
        ),
    )


FIGURE = kit.Figure(
    id="zhang2025-separate",
    caption=(
        "Linear attention with separate keys and queries of rank one on in-context linear"
        " regression, D = 4. (a) Loss of networks of consecutive seeds from the released start s ="
        " 0.01, the levels of the saddles, and descent on the population loss. (b) The same from s"
        " = 0.02, where drops come as early as in the released picture. (c) Strength of each"
        " eigenvector of the inputs' covariance in the first network of (a), 1 where it is learnt;"
        " dashed: descent on the population loss."
    ),
    configs={
        RELEASED: kit.Wanted(CONFIG, replicas=3),
        LARGER: kit.Wanted(CONFIG, ("initialization.scale=0.02",), replicas=3),
        SMALL: kit.Wanted(CONFIG, ("initialization.scale=0.005",)),
    },
    presets={"full": {RELEASED: kit.Wanted(CONFIG, ("dataset.n=80000",), replicas=6)}},
    passes={
        "random_features": {
            "levels": (
                "Keys that stay as they were drawn still let queries and values fit one eigenvector"
                " after the other; `principal`, `heads` and `axes` fail."
            )
        }
    },
)
