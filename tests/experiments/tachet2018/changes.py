"""Every claim of the figures fails under a change of their own runs."""

from __future__ import annotations

from tests.experiments.falsify import Change

CURVES = tuple(f"c = {c}{coarse}" for c in ("0", "1", "-0.5") for coarse in ("", ", coarse"))
RANDOM = ("optimizer.kind=sgd", "optimizer.batch_size=1", "optimizer.replacement=true")
ADAM = ("optimizer.kind=adam", "optimizer.lr=0.01", "optimizer.iterations=3000", "record.snapshots.interval=3")
SMALL_OFTEN = (f"dataset.x={[[1, 0]] * 7 + [[0, 2]]}", f"dataset.y={[1] * 7 + [-1]}")
BOTH_FEATURES = ("dataset.x=[[1, 1]]", "dataset.y=[1]")
EXCHANGED = ("dataset.y=[-1, 1]",)
LONGER = ("dataset.x=[[1.1, 0.0], [0.0, 1.0]]",)
ONE_OF_TWO = "a single neuron can learn only one of two orthogonal points"


def large(y: float) -> tuple[str, str]:
    """Return initial weights with which the logit of either class starts at order 1."""
    return f"initialization.y=[[{y}], [{2 * y}]]", f"initialization.z=[[{y}], [{y}]]"


CHANGES: dict[str, tuple[Change, ...]] = {
    "tachet2018-fig2": (
        Change("classes drawn at random", RANDOM, ("overlay", "first-order"), CURVES),
        Change("large initial weights", large(1.1), ("sigmoidal",), CURVES),
        Change("seven of eight samples small", SMALL_OFTEN, ("larger-norm",), CURVES),
        Change("the other label", ("dataset.y=[-1]",), ("regions", "case-1", "case-2"), ("phase",)),
        Change("a twentieth of the time", ("optimizer.iterations=100", "record.snapshots.interval=1"),
               ("case-3", "failure"), ("phase",), "below the line neurons die at any step and under any loss"),
    ),
    "tachet2018-fig3": (
        Change("labels exchanged", EXCHANGED, ("green", "green-P", "yellow-2", "failure", "winners", "sigmoidal"),
               untrained=ONE_OF_TWO),
        Change("x_1 three times as long", ("dataset.x=[[3.0, 0.0], [0.0, 1.0]]",), ("yellow",), untrained=ONE_OF_TWO),
        Change("a longer x_1", LONGER, ("overlay", "first-order"), untrained=ONE_OF_TWO),
    ),
    "tachet2018-fig4": (
        Change("unequal weights in a row", ("initialization.z=[[0.8], [0.8]]",), ("overlay", "first-order",
               "equal-weights", "larger-norm", "norm-fades")),
        Change("large initial weights", large(1.1), ("sigmoidal",)),
        Change("a smaller start of the deeper one", (*large(0.2115), "optimizer.iterations=30000"), ("deeper",),
               ("N = 4",)),
    ),
    "tachet2018-fig5-time": (
        Change("forty times the step", ("optimizer.lr=0.02", "optimizer.iterations=600", "record.snapshots.interval=1"),
               ("times", "overlay")),
        Change("a smaller x_1", ("dataset.x=[[0.3, 0.0], [0.0, 2.0]]", "optimizer.iterations=20000"),
               ("hinge-faster", "hinge-finite"), ("hinge",)),
    ),
    "tachet2018-fig6": (
        Change("samples drawn at random", RANDOM, ("overlay", "first-order"), ("lambda = 0.5", "coarse")),
        Change("both features in every sample", BOTH_FEATURES, ("starvation",)),
        Change("Adam", ADAM, ("bound",)),
    ),
    "tachet2018-fig7": (
        Change("labels exchanged", EXCHANGED, ("winner",), untrained=ONE_OF_TWO),
        Change("a longer x_1", LONGER, ("overlay",), untrained=ONE_OF_TWO),
    ),
    "tachet2018-fig8": (
        Change("unequal weights in a row", ("initialization.z=[[0.8], [0.8]]",), ("overlay", "first-order",
               "equal-weights", "larger-norm", "norm-fades")),
        Change("large initial weights", large(1.1), ("sigmoidal",)),
        Change("a smaller start of the deeper one", (*large(0.5157), "optimizer.iterations=20000"),
               ("deeper", "deeper-early"), ("N = 8",)),
    ),
    "tachet2018-fig9": (
        Change("classes drawn at random", RANDOM, ("overlay", "first-order"), CURVES),
        Change("margins above 1 from the start", large(2.0), ("sigmoidal", "stops"), CURVES),
        Change("the other label", ("dataset.y=[-1]",), ("regions",), ("phase",)),
        Change("the logistic loss", ("loss.kind=logistic",), ("general",), ("general",)),
        Change("the logistic loss", ("loss.kind=logistic",), ("death",), ("c_3",), "the neuron dies under any loss"),
    ),
    "tachet2018-fig10": (
        Change("samples drawn at random", RANDOM, ("overlay", "first-order"), ("lambda = 0.5", "coarse")),
        Change("a fair start", ("initialization.hidden_weight=[[0.1, 0.1]]",), ("bound", "example")),
    ),
    "tachet2018-table2-digits": (
        Change("no light", ("dataset.light_effect=false",), ("train", "test", "fails", "starved"), ("network",),
               "four epochs are enough for the light, not for the digits"),
    ),
    "tachet2018-extra-modes": (
        Change("samples drawn at random", RANDOM, ("layer", "layer-order", "classes", "classes-order"),
               ("layer", "layer, coarse", "classes", "classes, coarse")),
        Change("one point four times", (f"dataset.x={[[1.0] + [0.0] * 7] * 4}",),
               ("orthogonal", "orthogonal-order", "sqrt-m"), ("m = 4", "m = 4, coarse")),
        Change("initial weights against H2", ("initialization.kind=default_scaled",), ("lemma-3-1",), ("lemma",)),
        Change("initial weights against H5", ("initialization.kind=default_scaled",), ("lemma-a-1",), ("classes",)),
        Change("as many samples of either class", ("dataset.x=[[1.0, 0.0], [0.0, 2.0]]", "dataset.y=[1, -1]"),
               ("corollary",), ("ratio",)),
        Change("full batches", ("optimizer.kind=gd",), ("sampled",), ("sampled 0.04", "sampled 0.004")),
    ),
}  # fmt: skip
