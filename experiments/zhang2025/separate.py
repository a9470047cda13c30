"""Separate keys and queries of rank one: the loss drops D times, from saddle to saddle, an eigenvector at a time."""

from __future__ import annotations

import numpy as np

from dynamics_cli import kit
from dynamics_cli.runs.replica import replicas_of

from .theory.population import descent, moments, rise, saddle_losses, setting, strengths

CONFIG = "zhang2025/separate.yaml"
PRINTED = (1.0, 0.64057971, 0.37737216, 0.2098046, 0.13599507)
"""L(M_0) to L(M_4) in the output of the released notebook, for D = 4 and N = 31."""
LARGE, SMALL = "rank one", "smaller start"
LOW, HIGH = 0.1, 0.9
"""Strengths between which the rise of an eigenvector is timed."""


def crossing(values: kit.Floats, level: float, at: kit.Ints | None = None) -> float:
    """Return when values (K,), at iterations `at` or one an iteration, first reach a level; NaN where never."""
    steps, above = np.arange(len(values)) if at is None else at, np.flatnonzero(values >= level)
    if not len(above) or not above[0]:
        return float("nan")
    i = above[0]
    return float(np.interp(level, values[i - 1 : i + 1], steps[i - 1 : i + 1]))


def halves(losses: kit.Floats, levels: kit.Floats) -> kit.Floats:
    """Return the iterations (D,) at which losses (K,), one an iteration, have fallen half way between two levels."""
    return np.array([crossing(-losses, -level) for level in (levels[1:] + levels[:-1]) / 2])


def network(run: kit.Run) -> kit.Evidence:
    """Measure a network: where its loss rests, the strengths there, the heads in the end, and the times of its drops.

    A rest is a plateau of 1 % of the iterations, and its saddle that of the nearest level; drops that did not happen
    have NaN.
    """
    covariance, N, step = setting(run)
    eigenvalues, vectors = (np.flip(one, -1) for one in np.linalg.eigh(covariance))
    levels, losses = saddle_losses(eigenvalues, N), np.asarray(run.losses, np.float64)
    iterations, at = np.asarray(run.loss_iterations), np.asarray(run.snapshot_iterations)
    P = {name: np.asarray(value, np.float64) for name, value in run.parameters.items()}
    s = strengths(run.config.architecture.regression(P), covariance, N)  # type: ignore[attr-defined]
    predicted, M = descent(run.state(0), covariance, N, step, iterations)
    drops = halves(losses, levels)
    D, rests, errors = len(drops), [], []
    for one in kit.find_plateaus(iterations, losses, minimum_fraction=0.01):
        m = int(np.argmin(np.abs(np.log(levels / one.value))))
        rests.append(one.value / levels[m])
        middle = np.argmin(np.abs(at - (one.first + one.last) / 2))
        errors.append(float(np.abs(s[middle] - (np.arange(D) < m)).max()))
    key, query = (P[f"weight_{name}"][-1, :, 0] @ vectors for name in ("key", "query"))  # (H, D), along eigenvectors
    along = P["weight_value"][-1] * key * query
    heads, d = along.argmax(0), np.arange(D)
    cosines = [np.abs(one / np.linalg.norm(one, axis=1, keepdims=True))[heads, d] for one in (key, query)]
    predicted_s = strengths(M, covariance, N)
    rises = [[crossing(one, HIGH, steps) - crossing(one, LOW, steps) for one in values.T]
             for values, steps in ((s, at), (predicted_s, iterations))]  # fmt: skip
    return kit.Evidence(
        losses=losses, eigenvalues=eigenvalues, predicted=predicted, levels=levels, at=at, s=s, predicted_s=predicted_s,
        drops=drops, rests=np.array(rests), errors=np.array(errors), late=drops / halves(predicted, levels),
        heads=along.max(0) / along.sum(0), axes=np.minimum(*cosines),
        rises=np.array(rises) * step / [rise(a, b, LOW, HIGH) for a, b in zip(*moments(eigenvalues, N), strict=True)],
    )  # fmt: skip


def evidence(runs: kit.Runs) -> kit.Evidence:
    """Measure all networks, of consecutive seeds, by role."""
    return kit.Evidence(
        networks={
            role: [network(one) for one in (replicas_of(run) if "replicas" in run.info else [run])]
            for role, run in runs.items()
        }
    )


def farthest(ratios: kit.Floats) -> float:
    """Return the ratio that is farthest from 1 on a logarithmic axis; NaN where any or all are missing."""
    known = len(ratios) and np.isfinite(ratios).all()
    return float(ratios[np.argmax(np.abs(np.log(ratios)))]) if known else float("nan")


def claims(e: kit.Evidence) -> list[kit.Claim]:
    """Compare with the saddles, in-context principal component regression, and the scalar equation of a drop.

    Networks that rest at the last saddle but one count with the drops that they had, three at least.
    """
    levels, D, rises = e.networks[LARGE][0].levels, len(PRINTED) - 1, e.networks[SMALL][0].rises

    def counts(role: str) -> list[int]:
        return [int(np.isfinite(one.drops).sum()) for one in e.networks[role]]

    def all_of(name: str, role: str = LARGE, *, rests: bool = False) -> kit.Floats:
        """Return the numbers of all drops, or rests; NaN unless every network had all drops but the last."""
        pairs = zip(e.networks[role], counts(role), strict=True)
        values = [getattr(one, name)[: None if rests else n] for one, n in pairs]
        return np.concatenate(values) if min(counts(role)) >= D - 1 else np.array([np.nan])

    # fmt: off
    return [
        *(kit.theory(f"printed-{m}", f"Loss of the saddle with {m} of 4 eigenvectors learnt", "released notebook, "
                     "output of cell 6", kit.near(value, 1e-8), levels[m]) for m, value in enumerate(PRINTED)),
        kit.claim("drops", "Most networks lose in D = 4 drops (share of them that come to the last level through all "
                  "others)", "released notebook, picture of cell 6; most: more than half", kit.most(),
                  np.mean(np.array(counts(LARGE)) == D)),
        kit.claim("levels", "and between drops the loss rests at the levels of the saddles (loss over theory, the "
                  "farthest)", "theory, levels as printed", kit.around(1), farthest(all_of("rests", rests=True))),
        kit.claim("principal", "There the network is principal component regression in context: eigenvectors are "
                  "learnt wholly or not at all, largest first (largest distance of a strength from 1 or 0)",
                  "abstract; within 10 %", kit.at_most(0.1), np.max(all_of("errors", rests=True))),
        kit.claim("heads", "From a start four times smaller each drop is a single head's (least share of a head in an "
                  "eigenvector's strength)", "reduction to scalar equations; within 10 %", kit.around(1),
                  np.min(all_of("heads", SMALL))),
        kit.claim("axes", "whose key and query are the eigenvector (least cosine)", "reduction to scalar equations; "
                  "within 10 %", kit.around(1), np.min(all_of("axes", SMALL))),
        kit.theory("rise", "Descent on the population loss from there: strengths rise as the scalar equation says "
                   "(iterations from 0.1 to 0.9 over its, the farthest)", "scalar equations of the abstract",
                   kit.around(1), farthest(rises[1][np.isfinite(rises[1])])),
        kit.claim("times", "Drops come when descent on the population loss from the same weights says (ratio of half "
                  "times, median over all)", "theory", kit.around(1), np.median(all_of("late"))),
    ]
    # fmt: on


def numbers(e: kit.Evidence) -> dict[str, float]:
    """Return how far the networks' rises are from those of the scalar equation."""
    rises = e.networks[SMALL][0].rises[0]
    return {"iterations of a strength from 0.1 to 0.9 over the scalar equation's": farthest(rises[np.isfinite(rises)])}


@kit.styled
def draw(e: kit.Evidence) -> kit.Drawing:
    """Draw losses over the levels, and the strengths of the first network beside the theory's."""
    figure, (left, right) = kit.new_figure(2, aspect=0.85, extra_height=0.25)
    first = e.networks[LARGE][0]
    for level in first.levels:
        (saddle,) = left.plot([0, len(first.losses)], [level] * 2, color=kit.PALETTE.theory, ls=":", lw=1.0)
    for one in e.networks[LARGE]:
        (measured,) = left.plot(one.losses, color=kit.PALETTE.measured, lw=0.9)
    (predicted,) = left.plot(first.predicted, color=kit.SERIES[1], ls="--", lw=0.9)
    handles = {"saddles $L(M_m)$": saddle, "networks": measured, "population, first": predicted}
    for label, handle in handles.items():
        handle.set_label(label)
    for d, eigenvalue in enumerate(first.eigenvalues):
        right.plot(first.at, first.s[:, d], color=kit.SERIES[d], label=rf"$\lambda = {eigenvalue:.2g}$")
        right.plot(first.predicted_s[:, d], color=kit.SERIES[d], ls="--", lw=0.9)
    kit.place_legend(left, list(handles.values()), "below", columns=2)
    kit.place_legend(right, right.get_legend_handles_labels()[0], "below", columns=4)
    left.set(xlabel="iteration", xlim=(0, len(first.losses) - 1), ylabel="loss", ylim=(0, 1.1))
    right.set(xlabel="iteration", xlim=left.get_xlim(), ylabel="strength of an eigenvector", ylim=(-0.1, 1.2))
    kit.panel_label(left, 0, "Loss")
    kit.panel_label(right, 1, "First network (dashed: population)")
    return figure


FIGURE = kit.Figure(
    id="zhang2025-separate",
    caption=(
        "Linear attention with separate keys and queries of rank one on in-context linear regression, D = 4. Left: "
        "loss of networks of consecutive seeds, the levels of the saddles, and descent on the population loss. Right: "
        "strength of each eigenvector of the inputs' covariance, 1 where it is learnt."
    ),
    configs={
        LARGE: kit.Wanted(CONFIG, replicas=3),
        SMALL: kit.Wanted(CONFIG, ("initialization.scale=0.005",), replicas=1),
    },
    presets={"full": {LARGE: kit.Wanted(CONFIG, ("dataset.n=80000",), replicas=6)}},

)  # fmt: skip
