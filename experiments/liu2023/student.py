"""Teacher and student: the larger the initial weights, the later the student generalises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

ALPHAS = (0.5, 1.0, 2.0)
"""Factors of all initial weights; the released notebook has 2."""
LEARNT = 1e-3
"""Loss below which a network has learnt: the released threshold of a sample."""
OUTPUTS = 5
"""The paper's loss is the mean over the outputs."""
PRINTED = {
    200: (0.002719, 0.016901, 423.566223), 1000: (0.000151, 0.009309, 410.262024),
    2000: (0.000021, 0.007404, 397.348969), 5000: (0.0, 0.005049, 363.212830),
    10_000: (0.000001, 0.002987, 313.072876), 15_000: (0.0, 0.001753, 269.942719),
}  # fmt: skip
"""Epoch -> training loss, held-out loss, and squares of the weights, at alpha = 2."""
SOURCE = "released notebook, output of cell 2"


def squares(run: kit.Run) -> kit.Floats:
    """Return the sums of squares of all weights (K,), in which the notebook counts the first
    weight matrix twice.
    """
    first = np.asarray(run.parameters["weight_1"], np.float64)
    return np.asarray(run.measures["weight_norm"] ** 2 + (first**2).sum((1, 2)))


@dataclass(frozen=True)
class Student:
    """A student at its recorded epochs (K,); losses are per output."""

    epochs: kit.Ints
    train: kit.Floats
    test: kit.Floats
    squares: kit.Floats
    learnt: list[int | None]
    """When training and held-out loss fall below `LEARNT`."""


Evidence = dict[float, Student]
"""Alpha -> the student."""


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs."""
    of = {}
    for alpha, run in kit.by_values(runs, "{:g}").items():
        epochs = run.snapshot_iterations
        train, test = (run.measures[name] / OUTPUTS for name in ("train_loss", "test_loss"))
        learnt = [kit.first_below(epochs, losses, LEARNT) for losses in (train, test)]
        of[alpha] = Student(epochs, train, test, squares(run), learnt)
    return of


def claims(e: Evidence) -> list[kit.Claim]:
    two = e[2.0]
    made = list[kit.Claim]()
    for epoch, printed in PRINTED.items():
        rows = np.flatnonzero(two.epochs == epoch)
        for (key, name), number in zip(
            (
                ("train", "training loss"),
                ("test", "held-out loss"),
                ("squares", "squares of the weights"),
            ),
            printed,
            strict=True,
        ):
            if number < 1e-5 or (key == "squares" and epoch < 1000):
                continue  # of six digits none or one is left, or the weights have hardly moved
            measured = getattr(two, key)[rows[0]] if len(rows) else np.nan
            made.append(
                kit.claim(
                    f"{key}-{epoch}",
                    rf"{name} at epoch {epoch}, $\alpha$ = 2",
                    SOURCE,
                    kit.printed(number, 1e-6),
                    measured,
                )
            )
    times = np.array([run.learnt for run in e.values()], np.float64)
    delays = times[:, 1] / times[:, 0]
    return [
        *made,
        kit.claim(
            "delayed",
            rf"At $\alpha$ = 2 the held-out loss is below {LEARNT:g} long after the training loss "
            "(ratio of epochs)",
            "Section 3 (recalled)",
            kit.more_than(10),
            delays[-1],
        ),
        kit.claim(
            "later",
            r"The larger $\alpha$, the longer the delay as a ratio of epochs (share of successive "
            "alphas)",
            "Section 3 (recalled)",
            kit.exactly(1),
            kit.given(bool(np.isfinite(delays).all()), np.mean(np.diff(delays) > 0)),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return the loss of the initial weights, which PyTorch's seed draws."""
    return {"held-out loss at epoch 0, alpha = 2 (printed: 0.351991)": e[2.0].test[0]}


def draw(e: Evidence) -> kit.Drawing:
    name = r"held out, $\alpha={:g}$".format
    runs = e.values()
    _, test, squares = np.transpose([*PRINTED.values()])
    return kit.charts(
        kit.chart(
            "Losses",
            "loss per output",
            [kit.line(run.epochs[1:], run.train[1:], look="dotted") for run in runs],
            [kit.line(run.epochs[1:], run.test[1:], name(alpha)) for alpha, run in e.items()],
            kit.entry("training", "muted dotted"),
            kit.line([*PRINTED], test, "printed", "theory hollow"),
            kit.level(LEARNT, "learnt", "muted 0.8"),
            limits=(1e-6, 1),
        ),
        kit.chart(
            "Weights",
            "sum of squared weights",
            [kit.line(run.epochs[1:], run.squares[1:]) for run in runs],
            kit.line([*PRINTED], squares, look="theory hollow"),
        ),
        xlabel="epoch",
        log="xy",
    )


FIGURE = kit.Figure(
    passes={
        "early": {"train-200 test-200": "Epoch 200 lies within the first hundredth of the run."}
    },
    id="liu2023-student",
    caption=(
        "Losses and weights of a student whose initial weights are alpha times as large as by"
        " default, trained by AdamW on 100 outputs of a teacher; circles are the numbers printed in"
        " the released notebook for alpha = 2."
    ),
    configs=kit.grid("liu2023/student.yaml", {"initialization.factor": ALPHAS}, "{:g}"),
)
