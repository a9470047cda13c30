"""The minimal model: it predicts uniformly, then by the symbols of its context, then by the pairs;
the last comes earlier where the second is of no use; and its first growth has a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .strategies import (
    EQUAL_ROWS,
    LATER,
    ORDER,
    STRATEGIES,
    Network,
    network,
    strategies,
)
from .theory.population import (
    Growth,
    batch_error,
    entropy_of_rows,
    growth,
    two_doubly_stochastic,
    two_symbols,
)

CONFIG = "edelman2024/minimal.yaml"
PRINTED = {0: 0.693146, 400: 0.573590, 800: 0.593017, 1200: 0.526812, 1600: 0.528496}
"""Update -> loss of the batch in the released notebook at 266f06b, cell 3."""
NEWEST = 0.533037
"""The same after 400 updates in the newest notebook, cell 3."""
PLATEAU = (400, 800)
AFTER = (1200, 1600)
SIGNS = np.full(64, -1)
SIGNS[[1, 3, 5]] = 1
"""Signs of v_0 to v_63 in the output of the released notebook, cell 8: -0.0304, 0.0730, -0.0109,
0.0073, -0.0047, 0.0008, -0.0030, -0.0003, ...; later scores are below 2e-4, of either sign. The
cell reads `model.Wq`, which no model of the release has.
"""
THREE = {"v_0": -2.6351, "v_1": 6.1757, "diagonal": (0.0995 + 0.0990 + 0.0974) / 3}
"""Scores of a network of three symbols and the mean of the diagonal of its W, cell 5; all other
entries of W are between -0.0053 and -0.0023.
"""
START = np.log(2) - entropy_of_rows()
DOUBLY_START = np.log(2) - 0.5
"""The same of doubly stochastic chains: the mean entropy of a uniform probability is 1/2."""
ERROR = 0.0095
"""Three standard errors of both on 4000 chains: entropies of rows deviate by 0.2."""
MASKED = "masked"
RELEASED = "as released"
DOUBLY = "doubly stochastic"
INDEPENDENT = "independent rows"
UPDATES = 400
STEP = 1e-7
"""Updates and step of the early runs: W stays so small that outputs are linear in it."""
STEP_OF_V = 1.0
LAGS = 8
"""Lags that the picture shows."""


@dataclass(frozen=True)
class Scored(Network):
    """A minimal model: `v` (K, T) are the scores of lags, `previous` (K,) is the attention of the
    last token to the one before it, where all tokens before it are seen.
    """

    v: kit.Floats
    previous: kit.Floats


Evidence = dict[str, Scored]
"""Networks by role."""


def evidence_phases(runs: kit.Runs) -> Evidence:
    """Measure both networks and their scores."""
    e = {}
    for role, run in runs.items():
        (v,) = kit.recorded(run, "weight_lag")
        attention = np.exp(v - np.logaddexp.reduce(v, -1, keepdims=True))
        e[role] = Scored(**vars(network(run)), v=v, previous=attention[:, 1])
    return e


def evidence_delay(runs: kit.Runs) -> dict[str, Network]:
    """Measure both networks."""
    return {role: network(run) for role, run in runs.items()}


def mean_loss(run: Network, updates: tuple[int, ...]) -> float:
    """Return the mean of the losses after some updates; NaN where the run is shorter."""
    if run.at[-1] < max(updates):
        return np.nan
    return float(np.mean([kit.value_at(run.at, run.losses, i) for i in updates]))


def printed_mean(updates: tuple[int, ...]) -> float:
    """Return the mean of the losses that are printed after some updates."""
    return float(np.mean([PRINTED[i] for i in updates]))


def claims_phases(e: Evidence) -> list[kit.Claim]:
    """Compare with the released notebook and README."""
    masked = e[MASKED]
    released = e[RELEASED]
    plateau = mean_loss(released, PLATEAU)
    after = mean_loss(released, AFTER)
    of_two = 2 * batch_error(128) / float(np.sqrt(2))
    same = released.v[-1, : len(SIGNS)] * SIGNS > 0
    return [
        kit.claim(
            "start",
            "At the start the network predicts uniformly, and its divergence from the rows is log 2"
            " less their entropy",
            "closed form; three standard errors of 4000 chains",
            kit.near(START, ERROR),
            masked.kl[0],
            always="Both weights begin at 0, so that the outputs are 0 before training.",
        ),
        *[
            kit.claim(
                key,
                f"{name}: after the uniform start the strategy nearest to the network is unigram,"
                " then bigram (strategies in this order)",
                ORDER,
                kit.exactly(LATER),
                kit.given(run.copies, run.passed),
            )
            for key, name, run in (
                ("order", "With the mask", masked),
                ("order-released", "Without it, as released", released),
            )
        ],
        kit.claim(
            "plateau",
            "As released: the loss rests before it drops (mean after 400 and 800 updates)",
            "released notebook, cell 3: 0.573590 and 0.593017; two standard deviations of two"
            " batches",
            kit.near(printed_mean(PLATEAU), of_two),
            kit.given(released.copies, plateau),
        ),
        kit.claim(
            "drop",
            "As released: the loss has dropped after 1200 and 1600 updates (mean before less mean"
            " after)",
            "released notebook, cell 3: 0.5833 and 0.5277; two standard deviations of the"
            " difference",
            kit.near(printed_mean(PLATEAU) - printed_mean(AFTER), float(np.sqrt(2)) * of_two),
            plateau - after,
        ),
        kit.claim(
            "newest",
            "As released: the loss after 400 updates that the newest notebook prints",
            "newest released notebook, cell 3: 0.533037; two standard deviations of a batch",
            kit.near(NEWEST, 2 * batch_error(128)),
            mean_loss(released, (400,)),
        ),
        kit.claim(
            "below",
            "With the mask: the end is below what counting symbols achieves (divergence over that"
            " of unigram)",
            "abstract: a transition to the in-context bigram solution",
            kit.less_than(1),
            masked.kl[-1] / masked.levels[1],
        ),
        kit.claim(
            "previous",
            "With the mask: the first layer attends mostly to the previous token (its share of the"
            " last token's attention)",
            "released notebook, cells 4 and 5: $v_1$ = 6.34 and 6.18 is the largest",
            kit.most(),
            masked.previous[-1],
        ),
        kit.claim(
            "signs",
            "As released: the scores $v_1$, $v_3$ and $v_5$ are positive, those of other lags"
            " negative (of $v_0$ to $v_{63}$, those with the printed sign)",
            "released notebook, cell 8",
            kit.exactly(len(SIGNS)),
            kit.given(released.copies, np.sum(same)),
        ),
    ]


def numbers_phases(e: Evidence) -> dict[str, float]:
    """Return levels, times and scores of both networks."""
    numbers = {
        f"divergence of {name}": level
        for name, level in zip(STRATEGIES, e[MASKED].levels, strict=True)
    }
    for role, run in e.items():
        numbers[f"{role}: updates until unigram is nearest"] = run.firsts[1]
        numbers[f"{role}: updates until bigram is nearest"] = run.firsts[2]
        numbers[f"{role}: loss after 400 updates"] = mean_loss(run, (400,))
        numbers[f"{role}: divergence at the end"] = run.kl[-1]
        for lag in range(LAGS):
            numbers[f"{role}: v_{lag} at the end"] = run.v[-1, lag]
    return numbers


def draw_phases(e: Evidence) -> kit.Drawing:
    masked = e[MASKED]
    released = e[RELEASED]
    both = {MASKED: masked, RELEASED: released}.items()
    distances = zip(STRATEGIES, masked.distances.T, strict=True)
    return kit.charts(
        kit.chart(
            "Last token",
            "divergence from the rows",
            [kit.line(run.at, run.kl, role) for role, run in both],
            strategies(masked.levels),
            limits=(0, None),
        ),
        kit.chart(
            "Masked",
            "divergence from a strategy",
            *(
                kit.line(masked.at, values, name, f"C{k}")
                for k, (name, values) in enumerate(distances, 2)
            ),
            limits=(0, None),
        ),
        kit.chart(
            "All positions",
            "loss on held-out chains",
            [kit.line(run.at, run.losses, role) for role, run in both],
            kit.line([*PRINTED], [*PRINTED.values()], "printed, a batch", "muted points"),
            kit.line([400], [NEWEST], "newest print", "muted s"),
        ),
        kit.chart(
            "As released", "score of the lag", kit.lines(released.at, released.v[:, :4], "$v_{}$")
        ),
        log="x",
        legend="below",
    )


def claims_delay(e: dict[str, Network]) -> list[kit.Claim]:
    """Compare chains on which counting symbols helps with those on which it does not."""
    doubly = e[DOUBLY]
    independent = e[INDEPENDENT]
    return [
        kit.theory(
            "start-doubly",
            "Doubly stochastic chains: the divergence of a uniform prediction is log 2 - 1/2",
            "closed form; three standard errors of 4000 chains",
            kit.near(DOUBLY_START, ERROR),
            doubly.levels[0],
        ),
        kit.theory(
            "useless",
            "Doubly stochastic chains: counting symbols predicts as well as a uniform guess"
            " (divergence over that of uniform)",
            "definition: all symbols are equally frequent",
            kit.around(1),
            doubly.levels[1] / doubly.levels[0],
        ),
        kit.claim(
            "earlier",
            "Where counting symbols is of no use, the network comes nearest to bigram earlier"
            " (updates over those where it is of use)",
            "README of the released code, key finding 3: faster convergence",
            kit.less_than(1),
            kit.given(
                doubly.copies and independent.copies, doubly.firsts[2] / independent.firsts[2]
            ),
        ),
        kit.claim(
            "copies",
            "On doubly stochastic chains too the end is nearest to bigram, far below a uniform"
            " guess (divergence over that of uniform; half is our reading of far)",
            "README of the released code, key finding 3",
            kit.less_than(0.5),
            kit.given(doubly.copies, doubly.kl[-1] / doubly.levels[0]),
        ),
    ]


def numbers_delay(e: dict[str, Network]) -> dict[str, float]:
    """Return the times and ends of both networks."""
    numbers = {}
    for role, run in e.items():
        numbers[f"{role}: updates until bigram is nearest"] = run.firsts[2]
        numbers[f"{role}: divergence at the end"] = run.kl[-1]
    return numbers


def draw_delay(e: dict[str, Network]) -> kit.Drawing:
    return kit.charts(
        *(
            kit.chart(
                title,
                "divergence from the rows",
                kit.line(run.at, run.kl, "network"),
                strategies(run.levels),
                kit.upright(run.firsts[2], "nearest is bigram", "muted 0.8"),
            )
            for title, run in (
                ("Independent rows", e[INDEPENDENT]),
                ("Doubly stochastic", e[DOUBLY]),
            )
        ),
        log="x",
        limits=(0, 0.25),
    )


@dataclass(frozen=True)
class Weights:
    """The weights of a network along its training: the mean of the diagonal of W and of the rest
    (K,), and v (K, T).
    """

    at: kit.Ints
    diagonal: kit.Floats
    off_diagonal: kit.Floats
    v: kit.Floats


def weights_of(run: kit.Run) -> Weights:
    """Read the weights of a run."""
    v, W = kit.recorded(run, "weight_lag", "weight_match")
    K, k, _ = W.shape
    diagonal = np.trace(W, axis1=1, axis2=2) / k
    off_diagonal = (W.reshape(K, -1).sum(1) - k * diagonal) / (k * (k - 1))
    return Weights(run.snapshot_iterations, diagonal, off_diagonal, v)


def evidence_three(runs: kit.Runs) -> Weights:
    """Read the weights of the network."""
    return weights_of(runs[RELEASED])


def claims_three(e: Weights) -> list[kit.Claim]:
    """Compare with the weights that the released notebook prints."""
    source = "released notebook, cell 5"
    measured = {"v_0": e.v[-1, 0], "v_1": e.v[-1, 1], "diagonal": e.diagonal[-1]}
    names = {
        "v_0": "the score of the token itself, $v_0$",
        "v_1": "the score of the previous token, $v_1$",
        "diagonal": "the mean of the diagonal of W",
    }
    return [
        *[
            kit.claim(
                key.replace("_", "-"),
                f"Three symbols, at the end: {name}",
                source,
                kit.around(THREE[key]),
                measured[key],
            )
            for key, name in names.items()
        ],
        kit.claim(
            "off-diagonal",
            "Three symbols, at the end: other entries of W are negative (their mean, over that of"
            " the diagonal)",
            source,
            kit.less_than(0),
            kit.given(e.v[-1, 1] > 1, e.off_diagonal[-1] / e.diagonal[-1]),
        ),
    ]


def draw_three(e: Weights) -> kit.Drawing:
    def printed(*keys: str) -> kit.Line:
        values = [THREE[key] for key in keys]
        return kit.line(e.at[[-1] * len(keys)], values, "printed, at the end", "muted s")

    return kit.charts(
        kit.chart(
            "Second layer",
            "weight",
            kit.lines(e.at, {"diagonal of W": e.diagonal, "other entries of W": e.off_diagonal}),
            printed("diagonal"),
        ),
        kit.chart(
            "First layer",
            "score of the lag",
            kit.line(e.at, e.v[:, 0], "$v_0$", "C2"),
            kit.line(e.at, e.v[:, 1], "$v_1$", "C3"),
            printed("v_0", "v_1"),
        ),
    )


@dataclass(frozen=True)
class Early(Weights):
    """A network along its first growth, and the closed form of its weights.

    `done` says whether it was trained for `UPDATES`.
    """

    theory: Growth

    @property
    def done(self) -> bool:
        """Return whether the last state is that of the closed form."""
        return bool(self.at[-1] == UPDATES)

    @property
    def grown(self) -> bool:
        """Return whether the score of the previous token has grown as the closed form says."""
        return kit.around(1).holds(self.over(self.v[-1, 1], self.predicted_v[1]))

    def over(self, measured: float, predicted: float) -> float:
        """Return a number at the end over what the closed form gives for it."""
        return kit.given(self.done, measured / predicted)

    @property
    def predicted_v(self) -> kit.Floats:
        """Return v (T,) at the end in closed form."""
        return np.asarray(STEP * STEP_OF_V * UPDATES * (UPDATES - 1) / 2 * self.theory.lags)


def evidence_early(runs: kit.Runs) -> dict[str, Early]:
    """Read the weights and compute the closed forms."""
    e = {}
    chains = {INDEPENDENT: two_symbols, DOUBLY: two_doubly_stochastic}
    for role, run in runs.items():
        weights = weights_of(run)
        T = weights.v.shape[1]
        e[role] = Early(**vars(weights), theory=growth(*chains[role](T), T))
    return e


def claims_early(e: dict[str, Early]) -> list[kit.Claim]:
    """Compare the first growth with its closed form, and its signs with the printed ones."""
    source = "theory: the gradient at the start on infinitely many chains"
    grown = UPDATES * STEP
    claims = []
    for key, role in (("", INDEPENDENT), ("-doubly", DOUBLY)):
        run = e[role]
        name = role.capitalize()
        claims += [
            kit.claim(
                f"match{key}",
                f"{name}: the diagonal of W grows as the closed form says (ratio)",
                source,
                kit.around(1),
                run.over(run.diagonal[-1], grown * run.theory.diagonal),
            ),
            kit.claim(
                f"previous{key}",
                f"{name}: so does the score of the previous token, $v_1$ (ratio)",
                source,
                kit.around(1),
                run.over(run.v[-1, 1], run.predicted_v[1]),
            ),
        ]
    same = e[INDEPENDENT].v[-1, 1 : len(SIGNS)] * SIGNS[1:] > 0
    return [
        *claims,
        kit.claim(
            "unigram",
            "Where counting symbols is of use, other entries of W grow too (ratio to the closed"
            " form)",
            source,
            kit.around(1),
            e[INDEPENDENT].over(
                e[INDEPENDENT].off_diagonal[-1], grown * e[INDEPENDENT].theory.off_diagonal
            ),
        ),
        kit.claim(
            "no-unigram",
            "Where it is not, they fall (over the growth where it is of use)",
            "theory: sign of the closed form",
            kit.less_than(0),
            kit.given(
                e[DOUBLY].grown and e[INDEPENDENT].grown,
                e[DOUBLY].off_diagonal[-1] / e[INDEPENDENT].off_diagonal[-1],
            ),
        ),
        kit.claim(
            "signs",
            "The scores $v_1$, $v_3$ and $v_5$ are positive, those of later lags negative (of"
            " $v_1$ to $v_{63}$, those with the printed sign)",
            "released notebook, cell 8",
            kit.exactly(len(SIGNS) - 1),
            kit.given(e[INDEPENDENT].grown, np.sum(same)),
        ),
        kit.theory(
            "signs-theory",
            "So they are in the closed form (of $v_1$ to $v_{63}$, those with the printed sign)",
            "released notebook, cell 8",
            kit.exactly(len(SIGNS) - 1),
            np.sum(e[INDEPENDENT].predicted_v[1 : len(SIGNS)] * SIGNS[1:] > 0),
        ),
    ]


def numbers_early(e: dict[str, Early]) -> dict[str, float]:
    """Return the closed forms."""
    numbers = {}
    for role, run in e.items():
        numbers[f"{role}: growth of the diagonal of W"] = run.theory.diagonal
        numbers[f"{role}: growth of its other entries"] = run.theory.off_diagonal
        for lag in (0, 1, 2):
            numbers[f"{role}: D_{lag}"] = float(run.theory.D[lag])
    return numbers


def draw_early(e: dict[str, Early]) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 2, aspect=0.7, extra_height=0.2)
    lags = np.arange(LAGS)
    for column, (role, run) in enumerate(e.items()):
        names = {"diagonal of W": run.diagonal, "other entries of W": run.off_diagonal}
        rates = np.array([run.theory.diagonal, run.theory.off_diagonal])
        growth = kit.chart(
            role.capitalize(),
            r"$10^5\,\times$ weight",
            kit.lines(run.at, {name: 1e5 * values for name, values in names.items()}),
            kit.lines(run.at, 1e5 * STEP * rates * run.at[:, None], "", "theory dashed"),
        )
        handles = kit.panel(axes[column], column, growth)
        bars = axes[2 + column]
        bars.bar(lags, 1e3 * run.v[-1, :LAGS], color="C2", label="scores v")
        bars.plot(
            lags, 1e3 * run.predicted_v[:LAGS], "o", color=kit.PALETTE.theory, label="closed form"
        )
        bars.set(xlabel="lag", ylabel=r"$10^3\,\times$ score", xticks=lags)
        bars.axhline(0, color=kit.PALETTE.muted, lw=0.8)
        kit.panel_label(bars, 2 + column, f"Scores, {role}")
    kit.figure_legend(figure, [*handles, *kit.labelled(axes[2])])
    return figure


DOUBLY_CHAINS = "dataset.rows=doubly_stochastic"
FIRST = (
    f"optimizer.lr={STEP}",
    f"optimizer.layer_lr={{weight_lag: {STEP_OF_V / STEP}}}",
    f"optimizer.iterations={UPDATES}",
    "record.snapshots={kind: every, interval: 20}",
    "dataset.n_test=null",
)
FIGURES = kit.by_id(
    kit.Figure(
        id="edelman2024-phases",
        caption=(
            "The minimal model on Markov chains of two symbols. (a) Divergence of the last token's"
            " probabilities from the row of its symbol, with the mask and as released without it,"
            " and of three strategies. (b) Divergence of the masked network from each strategy."
            " (c) Cross entropy over all positions, and the losses of single batches that the"
            " released notebook prints. (d) Scores of the first lags, as released."
        ),
        configs={
            MASKED: kit.Wanted(CONFIG),
            RELEASED: kit.Wanted(
                CONFIG,
                (
                    "architecture.mask=false",
                    "optimizer.iterations=1600",
                    "record.snapshots.include=[400, 800, 1200]",
                ),
            ),
        },
        nulls=EQUAL_ROWS,
    ),
    kit.Figure(
        id="edelman2024-delay",
        caption=(
            "Divergence of the minimal model's last token from the row of its symbol, on chains"
            " with independent rows and on doubly stochastic chains, on which counting symbols"
            " predicts nothing; lines: the three strategies, and the update from which the network"
            " is nearest to bigram."
        ),
        configs={
            INDEPENDENT: kit.Wanted(CONFIG),
            DOUBLY: kit.Wanted(CONFIG, (DOUBLY_CHAINS,)),
        },
        nulls=EQUAL_ROWS,
    ),
    kit.Figure(
        id="edelman2024-three",
        caption=(
            "Weights of the minimal model on Markov chains of three symbols, as released without"
            " the mask, along its training; squares: the weights of a network that the released"
            " notebook prints."
        ),
        configs={
            RELEASED: kit.Wanted(
                CONFIG,
                (
                    "architecture.mask=false",
                    "dataset.symbols=3",
                    "architecture.outputs=3",
                    "dataset.n_test=null",
                    "optimizer.iterations=2000",
                    "record.snapshots={kind: every, interval: 100}",
                ),
            )
        },
        nulls=EQUAL_ROWS,
    ),
    kit.Figure(
        id="edelman2024-early",
        caption=(
            "First growth of the minimal model's weights with small steps, on chains with"
            " independent rows and on doubly stochastic chains: entries of W over the updates, and"
            " the scores v of the first lags in the end. Dashed lines and circles: closed form on"
            " infinitely many chains."
        ),
        configs={
            INDEPENDENT: kit.Wanted(CONFIG, FIRST),
            DOUBLY: kit.Wanted(CONFIG, (*FIRST, DOUBLY_CHAINS)),
        },
        nulls=EQUAL_ROWS,
        passes={
            "random_features": {
                "match match-doubly unigram": (
                    "Scores that stay at 0 leave W the gradient of the closed form, in which they"
                    " are 0."
                )
            }
        },
    ),
)
