"""Figures 5, 10 and 11: what the paper says of a run on two digits, as measurements."""

from __future__ import annotations

from dataclasses import dataclass

from dynamics_cli.reproduction.claims import Claim, around, at_least, at_most, claim, finding, less_than, most, near

from .digits import Evidence


@dataclass(frozen=True)
class Expected:
    """The numbers of one pair of digits."""

    source: str
    aligned_by: int
    """Iteration by which the alignment is good."""
    loss_falls: int | None = None
    """Iteration around which the loss starts to decrease, where the text names one."""


def claims(found: Evidence, expected: Expected) -> list[Claim]:
    """Compare a run with Section 4 and Appendix A.4."""
    return [*_data(found, expected), *_course(found, expected), *_findings(found, expected)]


def end_claims(found: Evidence) -> list[Claim]:
    """Compare the end with what Section 4 says of digits 1 and 0 only; 0.9 is our reading of good alignment."""
    return [
        claim(
            "rank-one",
            "The stable rank is almost 1 at the end",
            "Section 4, Final convergence",
            expected=around(1.0),
            measured=found.history.stable_rank[-1],
        ),
        *[
            claim(
                f"w-{name}",
                f"At the end the mean neuron of V{sign} shows good alignment with x{sign} (cosine)",
                "Section 4, Figure 5 (right); 0.9 is our reading of good",
                expected=at_least(0.9),
                measured=cosine,
            )
            for name, sign, cosine in zip(("plus", "minus"), "+-", found.neuron_cosines, strict=True)
        ],
    ]


def _data(found: Evidence, expected: Expected) -> list[Claim]:
    return [
        claim(
            "same-label",
            "A pair of data is very likely to be positively correlated if it has the same label (share)",
            f"Section 4, {expected.source} (left)",
            expected=most(),
            measured=found.data.same,
        ),
        claim(
            "different-label",
            "and negatively correlated if it has different labels (share)",
            f"Section 4, {expected.source} (left)",
            expected=most(),
            measured=found.data.different,
        ),
        claim(
            "opposite",
            "cos(x+, x-) is almost -1",
            "Section 4, Final convergence",
            expected=near(-1.0, 0.01),
            measured=found.centre_cosine,
        ),
    ]


def _course(found: Evidence, expected: Expected) -> list[Claim]:
    by = expected.aligned_by
    timed = []
    if expected.loss_falls is not None:
        timed.append(
            claim(
                "loss-falls",
                "After about this iteration the norm grows and the loss decreases (first loss below 0.9)",
                f"Section 4, {expected.source} (third)",
                expected=around(expected.loss_falls),
                measured=found.falls,
            )
        )
    return [
        claim(
            "aligned",
            f"Good alignment after about {by} iterations (smaller cosine of the two mean neurons)",
            f"Section 4, {expected.source} (second); 0.95 is our reading of good",
            expected=at_least(0.95),
            measured=found.cosine_at(by),
        ),
        *timed,
        claim(
            "alignment-drops",
            "When the loss decreases the alignment drops (last cosine over the largest)",
            "Section 4, Alignment phase",
            expected=less_than(1.0),
            measured=found.cosine_at(int(found.iterations[-1])) / found.peak,
        ),
        claim(
            "rank-below-2",
            "The stable rank decreases below 2 (at the end)",
            f"Section 4, Theorem 1, {expected.source} (third)",
            expected=less_than(2.0),
            measured=found.history.stable_rank[-1],
        ),
        claim(
            "loss-end",
            "The loss converges to 0 (last loss over the first)",
            f"Theorem 1, {expected.source} (third); a fifth is our reading of the figure",
            expected=at_most(0.2),
            measured=found.losses[-1] / found.losses[0],
        ),
    ]


def _findings(found: Evidence, expected: Expected) -> list[Claim]:
    source = expected.source
    cosines = [
        finding(f"cosine-{k}", f"Smaller mean cosine at iteration {k}", source, measured=found.cosine_at(k))
        for k in (1000, 1500, 2000, 4000)
    ]
    return [
        finding("share-same", "Share of same-label pairs with positive correlation", source, measured=found.data.same),
        finding(
            "share-different",
            "Share of different-label pairs with negative correlation",
            source,
            measured=found.data.different,
        ),
        finding(
            "mu",
            "Least y_i y_j cos(x_i, x_j): Assumption 1 does not hold, so the bound t1 does not apply here",
            "Assumption 1, Theorem 1",
            measured=found.data.mu,
        ),
        *cosines,
        finding("loss-2000", "Loss at iteration 2000", source, measured=found.loss_at(2000)),
        finding("loss-3000", "Loss at iteration 3000", source, measured=found.loss_at(3000)),
        finding("loss-last", "Loss at the end", source, measured=found.losses[-1]),
        finding("rank-first", "Stable rank at initialisation", source, measured=found.history.stable_rank[0]),
        *[
            finding(f"cosine-{sign}", f"cos(mean of V{sign}, x{sign}) at the end", source, measured=cosine)
            for sign, cosine in zip("+-", found.neuron_cosines, strict=True)
        ],
        finding("slope", "Power of t with which the loss falls over the last half", "Theorem 1", measured=found.slope),
        finding(
            "placed",
            "Share of neurons in the region of their sign (or dead) at the best alignment: data that violate "
            "Assumption 1 keep neurons outside although their mean is aligned",
            "Theorem 1",
            measured=found.placed,
        ),
    ]
