"""A transformer of two layers: the same phases, and the two heads that copy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .strategies import EQUAL_ROWS, LATER, ORDER, Network, network, strategies

CONFIG = "edelman2024/transformer.yaml"
INDEPENDENT = "independent rows"
DOUBLY = "doubly stochastic"
EQUAL = "equal rows"


@dataclass(frozen=True)
class Heads(Network):
    """A transformer: `previous` and `induction` (K, 2) are the scores of the head of each layer."""

    previous: kit.Floats
    induction: kit.Floats

    def last(self, scores: kit.Floats) -> kit.Floats:
        """Return scores (2,) at the end; NaN where the network does not copy pairs."""
        return scores[-1] if self.copies else np.full(2, np.nan)


Evidence = dict[str, Heads]
"""Networks by role."""


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the networks."""
    return {
        role: Heads(
            **vars(network(run)),
            previous=run.measures["attention_previous"],
            induction=run.measures["attention_induction"],
        )
        for role, run in runs.items()
    }


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with the abstract and README of the release."""
    run = e[INDEPENDENT]
    doubly = e[DOUBLY]
    chance = e[EQUAL].induction[-1, 1]
    heads = "abstract: statistical induction heads; README of the released code, key finding 4"
    return [
        kit.claim(
            "order",
            "After the uniform start the strategy nearest to the transformer is unigram, then"
            " bigram (strategies in this order)",
            ORDER,
            kit.exactly(LATER),
            kit.given(run.copies, run.passed),
        ),
        kit.claim(
            "beyond",
            "The end is mostly beyond what counting symbols achieves (share of the divergence"
            " between unigram and bigram)",
            "abstract: a transition to the in-context bigram solution",
            kit.most(),
            (run.levels[1] - run.kl[-1]) / (run.levels[1] - run.levels[2]),
        ),
        kit.claim(
            "previous",
            "The head of the first layer attends mostly to the previous token (mean weight)",
            heads,
            kit.most(),
            run.last(run.previous)[0],
        ),
        kit.claim(
            "induction",
            "The head of the second layer attends mostly to tokens behind earlier occurrences of"
            " its own: to most of what a transformer leaves that was trained on sequences with"
            " equal rows, where there is nothing to induce (mean weight, less that of this"
            " transformer, over 1 less it)",
            heads,
            kit.most(),
            (run.last(run.induction)[1] - chance) / (1 - chance),
        ),
        kit.claim(
            "earlier",
            "On doubly stochastic chains, where counting symbols is of no use, the transformer is"
            " nearest to bigram earlier (iterations over those on independent rows)",
            "README of the released code, key finding 3: faster convergence",
            kit.less_than(1),
            kit.given(
                run.copies and doubly.distances[-1].argmin() == 2, doubly.firsts[2] / run.firsts[2]
            ),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return the levels and times of both networks."""
    values = {}
    for role, run in e.items():
        values[f"{role}: weight of induction tokens at the end"] = run.induction[-1, 1]
        if role == EQUAL:
            continue
        values[f"{role}: iterations until unigram is nearest"] = run.firsts[1]
        values[f"{role}: iterations until bigram is nearest"] = run.firsts[2]
        values[f"{role}: divergence at the end"] = run.kl[-1]
        values[f"{role}: divergence of unigram"] = run.levels[1]
        values[f"{role}: divergence of bigram"] = run.levels[2]
    return values


def draw(e: Evidence) -> kit.Drawing:
    chance = e[EQUAL]
    runs = {role: e[role] for role in (INDEPENDENT, DOUBLY)}.items()
    return kit.charts(
        *(
            kit.chart(
                role.capitalize(),
                "divergence from the rows",
                kit.line(run.at, run.kl, "transformer"),
                strategies(run.levels),
                limits=(0, 0.35),
            )
            for role, run in runs
        ),
        *(
            kit.chart(
                f"Heads, {role}",
                "mean weight of attention",
                kit.line(run.at, run.previous[:, 0], "layer 1: previous token", "C1"),
                kit.line(run.at, run.induction[:, 1], "layer 2: induction tokens", "C2"),
                kit.line(chance.at, chance.induction[:, 1], "layer 2, equal rows", "muted 0.9"),
                limits=(0, 1),
            )
            for role, run in runs
        ),
    )


FIGURE = kit.Figure(
    id="edelman2024-transformer",
    caption=(
        "A transformer of two layers of attention, each with one head, on Markov chains of three"
        " symbols with independent rows, and on doubly stochastic chains. Top: divergence of the"
        " last token's probabilities from the row of its symbol, and of three strategies. Bottom:"
        " the score of the previous token in the first layer, and that of the induction tokens in"
        " the second, also of a transformer trained on sequences with equal rows, where there is"
        " nothing to induce."
    ),
    configs={
        INDEPENDENT: kit.Wanted(CONFIG),
        DOUBLY: kit.Wanted(CONFIG, ("dataset.rows=doubly_stochastic",)),
        EQUAL: kit.Wanted(CONFIG, ("dataset.rows=equal",)),
    },
    nulls=EQUAL_ROWS,
    passes={
        "random_features": {
            "order beyond previous induction": (
                "An embedding that stays as drawn keeps three symbols apart in 32 numbers; all"
                " other weights are trained."
            )
        }
    },
)
