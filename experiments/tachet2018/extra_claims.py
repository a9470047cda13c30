"""The claims of `extra_modes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynamics_cli.reproduction.claims import Claim, around, at_most, claim, exactly, finding, near

if TYPE_CHECKING:
    from .extra_modes import Evidence


def extra_claims(found: Evidence) -> list[Claim]:
    """Compare with Lemmas 3.1 and A.1, Theorem 3.2, Corollary 3.3 and Appendices A.2, A.4, A.7."""
    return [*_overlays(found), *_independence(found), *_sampling(found)]


def _overlays(found: Evidence) -> list[Claim]:
    groups = (
        ("layer", "several neurons per class", "A.4", found.layer, found.coarse[0]),
        ("orthogonal", "orthogonal points of a class, full batches", "A.7", found.orthogonal, found.coarse[1]),
        (
            "classes",
            "three classes under softmax",
            "A.2 (the curve is not in the paper)",
            found.classes,
            found.coarse[2],
        ),
    )
    made = []
    for key, what, source, curves, power in groups:
        made += [
            claim(
                key,
                f"Trained networks follow the closed form: {what} (largest |P_train - P_theory|)",
                source,
                expected=at_most(1e-3),
                measured=max(one.error for one in curves),
            ),
            claim(
                f"{key}-order",
                "and deviate in proportion to the step (power of the step)",
                "gradient descent is Euler's method",
                expected=near(1.0, 0.1),
                measured=power,
            ),
        ]
    gain = found.rates / found.rates[0]
    expected = np.sqrt([1, 2, 4, 8])
    return [
        *made,
        claim(
            "sqrt-m",
            "m orthogonal points are learnt sqrt(m) times as fast (largest relative deviation of the trained rate)",
            "A.7",
            expected=at_most(0.01),
            measured=float(np.abs(gain / expected - 1).max()),
        ),
    ]


def _independence(found: Evidence) -> list[Claim]:
    return [
        claim(
            "lemma-3-1",
            "Under H1 to H3 no neuron changes its activity on any point, no output weight its sign (changes seen)",
            "Lemma 3.1",
            expected=exactly(0),
            measured=found.lemma[0],
        ),
        claim(
            "lemma-a-1",
            "The same for three classes under H4 to H6 (changes seen)",
            "Lemma A.1",
            expected=exactly(0),
            measured=found.lemma[1],
        ),
        claim(
            "corollary",
            "t2* / t1* is about (||x_1|| / ||x_2||) p_1 / (1 - p_1) (trained, p_1 = 3/4, norms 1 and 2, P = 98 %)",
            "Corollary 3.3",
            expected=around(found.ratio[1]),
            measured=found.ratio[0],
        ),
        finding("ratio-exact", "Exact ratio for these starts", "A.5", measured=found.ratio[2]),
    ]


def _sampling(found: Evidence) -> list[Claim]:
    means = found.deviations.mean(axis=1)
    return [
        claim(
            "sampled",
            "Classes drawn at random: the mean deviation is like the square root of the step (power of the step)",
            "Theorem 3.2 with Section 3.2's p_k; noise of sampling",
            expected=near(0.5, 0.15),
            measured=found.sampling_order,
        ),
        finding("sampled-coarse", "Mean largest deviation, step 0.01", "Theorem 3.2", measured=float(means[0])),
        finding("sampled-fine", "Mean largest deviation, step 0.001", "Theorem 3.2", measured=float(means[1])),
    ]
