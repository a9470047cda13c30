"""Phases under label corruption: labels memorised, memorised and the rule learnt, ignored, and
all forgotten.
"""

from __future__ import annotations

import numpy as np

from dynamics_cli import kit

from .corruption import COEXISTENCE, Corrupted, accuracies, corrupted, smaller

GROKKING = "grokking"
COEXIST = "coexistence"
PARTIAL = "partial inversion"
FULL = "full inversion"
FORGET = "forgetting"
BATCHES = "mini-batch"
WORDS = {"train": "training accuracy", "test": "test accuracy", "test_loss": "test loss"}
SHARE = 0.02
"""A plateau is at its level within this share of it."""
PRINTED: dict[str, tuple[tuple[int, str, float], ...]] = {
    GROKKING: (
        (10, "train", 0.8163265306),
        (18, "train", 0.9883078231),
        (30, "test", 0.2303931987),
        (40, "test", 0.9870350691),
        (52, "test_loss", 0.00476884),
        (90, "test_loss", 0.00109574),
    ),
    COEXIST: (
        (520, "train", 0.983206),
        (520, "test", 0.987035),
        (520, "test_loss", 0.00868115),
        (1000, "train", 0.978316),
        (1000, "test", 0.982997),
        (1000, "test_loss", 0.00842048),
    ),
    PARTIAL: (
        (50, "test", 0.0136026),
        (50, "test_loss", 0.0115149),
        (260, "train", 0.815476),
        (260, "test", 0.999787),
        (260, "test_loss", 0.00582721),
        (500, "train", 0.785502),
    ),
    FULL: (
        (100, "test", 0.666312),
        (260, "train", 0.657313),
        (260, "test", 1.0),
        (260, "test_loss", 0.00856839),
        (500, "train", 0.653699),
    ),
    FORGET: ((500, "train", 0.656037), (500, "test", 0.999575)),
    BATCHES: (
        (1040, "train", 0.804415),
        (1040, "test", 1.0),
        (1040, "test_loss", 0.00239691),
        (2000, "train", 0.818479),
    ),
}
"""Panel -> epoch (of mini-batches: step), curve and number in the output of the released
notebook.
"""
RELEASED = 97
"""The p of the printed numbers."""
Evidence = dict[str, Corrupted]
"""Panel -> its run."""


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs."""
    return {name: corrupted(run) for name, run in runs.items()}


def reached(name: str, run: Corrupted) -> list[tuple[int, str, float]]:
    """Return the printed numbers at epochs that a run of the released size has reached."""
    return [entry for entry in PRINTED[name] if run.p == RELEASED and entry[0] <= run.epochs[-1]]


def claims(e: Evidence) -> list[kit.Claim]:
    coexist, partial, full, forget, batches = (
        e[name] for name in (COEXIST, PARTIAL, FULL, FORGET, BATCHES)
    )
    learnt = {name: run.test[-1] > 0.9 for name, run in e.items()}
    return [
        *[
            kit.claim(
                f"{name.split()[0]}-{key.replace('_', '-')}-{epoch}",
                f"{name}: {WORDS[key]} at epoch {epoch}",
                "printed; batches are our draws: around" if name == BATCHES else "printed",
                kit.around(value) if name == BATCHES else kit.printed(value),
                run.at(key, epoch),
            )
            for name, run in e.items()
            for epoch, key, value in reached(name, run)
        ],
        kit.claim(
            "coexistence-memorises",
            "coexistence: replaced labels are memorised (accuracy on them)",
            "abstract (i)",
            kit.around(1),
            coexist.replaced[-1],
        ),
        kit.claim(
            "coexistence-generalises",
            "coexistence: the rule is learnt too (test accuracy)",
            "abstract (i); 100 %",
            kit.around(1),
            coexist.test[-1],
        ),
        kit.claim(
            "partial-inverts",
            "partial inversion: more test than training pairs are right (difference, once the "
            "rule is learnt)",
            "name of the phase",
            kit.more_than(0),
            kit.given(learnt[PARTIAL], partial.test[-1] - partial.train[-1]),
        ),
        kit.claim(
            "partial-memorises",
            "partial inversion: some replaced labels are memorised still (accuracy on them, "
            "once the rule is learnt)",
            "name of the phase; 1/p and three deviations",
            kit.more_than(partial.chance),
            kit.given(learnt[PARTIAL], partial.replaced[-1]),
        ),
        kit.claim(
            "full-stage-1",
            "full inversion: at first all labels are memorised (largest training accuracy)",
            "abstract, two stages",
            kit.near(1, 0.01),
            full.train.max(),
        ),
        kit.claim(
            "full-plateau",
            "full inversion: then the training accuracy falls to 1 - noise (1 - 1/p)",
            "abstract (iii); derived",
            kit.near(full.plateau, SHARE * full.plateau),
            full.train[-1],
        ),
        kit.claim(
            "full-kept",
            "full inversion: all labels that are right are learnt (accuracy on them)",
            "abstract (iii)",
            kit.near(1, 0.01),
            full.kept[-1],
        ),
        kit.claim(
            "full-ignores",
            "full inversion: replaced labels are ignored (accuracy on them, once all were "
            "memorised)",
            "abstract (iii); 1/p and three deviations",
            kit.at_most(full.chance),
            kit.given(full.train.max() > 0.99, full.replaced[-1]),
        ),
        kit.claim(
            "full-periodic",
            "full inversion: decay makes neurons periodic (share with an IPR above 1/2)",
            "abstract (iv); most: more than half",
            kit.most(),
            full.periodic,
        ),
        kit.claim(
            "full-more-periodic",
            "full inversion: more neurons are periodic than in coexistence (difference of "
            "the shares)",
            "abstract (iv)",
            kit.more_than(0),
            kit.given(learnt[FULL] and learnt[COEXIST], full.periodic - coexist.periodic),
        ),
        kit.claim(
            "forgetting-learns",
            f"forgetting, p = {forget.p}: the rule is learnt (largest test accuracy)",
            "notebook; 100 %",
            kit.around(1),
            np.nanmax(forget.test),
        ),
        kit.claim(
            "forgetting-forgets",
            f"forgetting, p = {forget.p}: the rule is lost again (last test loss over the "
            "zero network's, 1/p, once learnt)",
            "notebook",
            kit.near(1, SHARE),
            kit.given(np.nanmax(forget.test) > 0.9, forget.test_loss[-1] * forget.p),
        ),
        kit.claim(
            "mini-batch-inverts",
            "mini-batch: more test than training pairs are right without decay "
            "(difference, once the rule is learnt)",
            "notebook",
            kit.more_than(0),
            kit.given(learnt[BATCHES], batches.test[-1] - batches.train[-1]),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    def over_time(name: str, run: Corrupted) -> kit.Chart:
        marks = [(i, value) for i, key, value in reached(name, run) if key != "test_loss"]
        at, values = np.array(marks).reshape(-1, 2).T
        size = "" if run.p == RELEASED else f", $p = {run.p}$"
        return kit.chart(
            f"{name.capitalize()}{size}",
            "accuracy",
            accuracies(run.epochs, vars(run), run.plateau),
            kit.line(at, values, "printed", "theory +"),
            xlabel="step" if name == BATCHES else "epoch",
        )

    return kit.charts(*(over_time(*item) for item in e.items()), limits=(-0.03, 1.05))


def _decay(value: float, epochs: int, every: int, *more: str) -> kit.Wanted:
    length = (f"optimizer.iterations={epochs}", f"record.snapshots.interval={every}")
    return kit.Wanted(
        "doshi2023/coexistence.yaml", (f"optimizer.weight_decay={value}", *length, *more)
    )


def _batches(steps: int) -> kit.Wanted:
    data = (
        "dataset.train_fraction=0.64991",
        "dataset.replaced_labels=0.2",
    )  # 6 115 pairs, as int(0.65 p^2)
    batches = ("optimizer.batch_size=64", "optimizer.drop_last=true", "optimizer.lr=0.005")
    return _decay(0.0, steps, 40, *data, *batches)


SMALL = (*smaller(47, 240), "dataset.train_fraction=0.6", "dataset.replaced_labels=0.2")
FIGURE = kit.Figure(
    id="doshi2023-phases",
    caption=(
        "Addition modulo 97, AdamW: accuracy on the training pairs as they are labelled, on the"
        " pairs whose label was kept and was replaced, and on held-out pairs. Half of the pairs is"
        " trained, 35 % of their labels are replaced, none of the first panel; of mini-batches 65 %"
        " and 20 %; of p = 47, in preset default, 60 % and 20 %. Weight decay: 5, 0, 5, 15, 20, 0."
        " Crosses: numbers in the output of the released notebook."
    ),
    configs={
        GROKKING: "doshi2023/grokking.yaml",
        COEXIST: COEXISTENCE,
        PARTIAL: _decay(5.0, 260, 10),
        FULL: _decay(15.0, 300, 10),
        FORGET: _decay(20.0, 1500, 20, *SMALL),
        BATCHES: _batches(1040),
    },
    presets={
        "full": {
            PARTIAL: _decay(5.0, 500, 10),
            FULL: _decay(15.0, 500, 10),
            FORGET: _decay(20.0, 5000, 100),
            BATCHES: _batches(2000),
        }
    },
    nulls={"without decay": ("optimizer.weight_decay=0.0",)},
    passes={
        "slow": {
            "coexistence-memorises": (
                "With a hundredth of the step labels are memorised within the run."
            )
        },
        "decay": {
            "coexistence-* mini-batch-*": (
                "These networks have no decay: this null leaves them as they are."
            ),
        },
    },
)
