"""Loss and accuracy on both splits: the test accuracy follows long after the training accuracy."""

from __future__ import annotations

from dynamics_cli import kit

from .grokking import ADAMW, GD, KEYS, MOMENTUM, NAN, NO_DECAY, Evidence, chosen, evidence, own_form


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
    figure, axes = kit.new_figure(3, 2, aspect=0.85, extra_height=0.3)
    for column, (name, run) in enumerate(e.items()):
        looks = (
            ("training pairs", kit.PALETTE.measured, run.train_loss, run.train),
            ("test pairs", kit.PALETTE.rank, run.test_loss, run.test),
        )
        for label, color, loss, accuracy in looks:
            axes[column].semilogy(run.epochs, loss, color=color, label=label)
            axes[3 + column].plot(run.epochs, accuracy, color=color)
        axes[column].axhline(
            1 / run.p, color=kit.PALETTE.theory, ls=":", lw=0.8, label="zero network, $1/p$"
        )
        for k in (column, 3 + column):
            kit.set_time_axis(axes[k], run.epochs, label="epoch")
        axes[3 + column].set_ylim(-0.03, 1.03)
        kit.panel_label(axes[column], column, name.capitalize() if name != ADAMW else name)
        kit.panel_label(axes[3 + column], 3 + column)
    axes[0].set_ylabel("loss")
    axes[3].set_ylabel("accuracy")
    kit.figure_legend(figure, kit.labelled(axes[0]))
    return figure


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
