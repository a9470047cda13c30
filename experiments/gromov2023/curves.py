"""Loss and accuracy on both splits: the test accuracy follows long after the training accuracy."""

from __future__ import annotations

from dynamics_cli import kit

from .grokking import (
    ADAMW,
    GD,
    KEYS,
    MOMENTUM,
    NAN,
    NO_DECAY,
    Evidence,
    Grokking,
    chosen,
    evidence,
    own_form,
)


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with the abstract: grokking under gradient descent without regularisation, and
    under AdamW.
    """
    made = []

    for name, run in e.items():
        key = KEYS[name]
        memorised = run.at(
            run.test, run.t_train
        )  # where most test pairs are right by then, nothing is delayed
        delay = run.t_test / run.t_train if memorised < 0.5 else NAN
        made += [
            kit.claim(
                f"{key}-learns",
                f"{name}: both splits are learnt in the end (the smaller accuracy)",
                "abstract",
                kit.near(1, 0.01),
                min(run.train[-1], run.test[-1]),
            ),
            kit.claim(
                f"{key}-later",
                f"{name}: the test pairs later than the training pairs (ratio of the epochs of "
                "99 %, if most were not right by then)",
                "abstract",
                kit.more_than(1),
                delay,
            ),
            kit.claim(
                f"{key}-memorises",
                f"{name}: when the training pairs are learnt, most test pairs are not (test "
                "accuracy then)",
                "abstract; most: more than half",
                kit.less_than(0.5),
                memorised,
            ),
            kit.theory(
                f"{key}-start",
                f"{name}: at first both losses are the zero network's (the larger deviation, "
                "times p)",
                "one-hot labels: 1/p",
                kit.at_most(0.03),
                max(abs(loss[0] * run.p - 1) for loss in (run.train_loss, run.test_loss)),
            ),
        ]
    return made


def draw(e: Evidence) -> kit.Drawing:
    def pairs(run: Grokking, train: kit.Floats, test: kit.Floats) -> list[kit.Line]:
        return [
            kit.line(run.epochs, train, "training pairs", "measured"),
            kit.line(run.epochs, test, "test pairs", "rank"),
        ]

    return kit.charts(
        *(
            kit.chart(
                name.capitalize() if name != ADAMW else name,
                "loss",
                pairs(run, run.train_loss, run.test_loss),
                kit.level(1 / run.p, "zero network, $1/p$", "theory dotted 0.8"),
                log="y",
            )
            for name, run in e.items()
        ),
        *(
            kit.chart("", "accuracy", pairs(run, run.train, run.test), limits=(-0.03, 1.03))
            for run in e.values()
        ),
        xlabel="epoch",
    )


CONFIGS, PRESETS = chosen(GD, MOMENTUM, ADAMW)
FIGURE = kit.Figure(
    id="gromov2023-curves",
    caption=(
        "Addition modulo p, 60 % of all pairs trained (49 % in the preset full): loss and accuracy"
        " on trained and held-out pairs under gradient descent, with momentum 0.9 (neither with"
        " regularisation), and AdamW with weight decay 5."
    ),
    evidence=evidence,
    configs=CONFIGS,
    presets=PRESETS,
    variants=own_form(GD, MOMENTUM),
    passes={"decay": {"gd-* momentum-*": NO_DECAY}},
    nulls={"nearly all pairs": ("dataset.train_fraction=0.95",)},
)
