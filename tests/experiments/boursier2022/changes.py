"""Every claim of this paper fails under some named change of its own runs."""

from __future__ import annotations

from tests.experiments.falsify import Change

FIVE_POINTS = "dataset={kind: points, x: [[-1.5], [-1.0], [0.0], [0.25], [2.0]], y: [0.7, -0.3, -0.3, 0.4, 0.2], append_bias: true}"  # noqa: E501
HALF_LINEAR = "architecture.activation={kind: leaky_relu, slope: 0.5}"
REDRAWN = ("initialization.kind=balanced", "initialization.divide_by=sqrt_width_times_dim")
SMALL_ALIGNED = (
    "architecture.width=4",
    "initialization={kind: values, hidden_weight: [[2e-9, 1e-9], [-1e-9, 2e-9], [-2e-6, -1e-6], [1e-6, -2.1e-6]],"
    " output_weight: [2.2e-9, -2.2e-9, 2.2e-6, -2.3e-6]}",
)
LARGE_OUTPUTS = ("initialization.kind=unbalanced", "initialization.output_value=1.0")
FEW = tuple(f"few, scale {one}" for one in ("10.0", "1.0", "1.0e-2", "1.0e-4", "1.0e-6", "1.0e-8", "1.0e-12"))

CHANGES = {
    "boursier2022-fig1": [
        Change("a large scale", ("initialization.scale=3.0",), ("order",)),
        Change("a moderate scale", ("initialization.scale=1e-2",), ("alignment-before-growth",)),
        Change("a leaky ReLU", (HALF_LINEAR,), ("lemma-2-cosine",)),
        Change("output weights that are not small",
               ("initialization.kind=unbalanced", "initialization.output_value=0.1"), ("lemma-2-norm",)),
        Change("aligned neurons a thousandth of the others", SMALL_ALIGNED, ("lemma-3", "lemma-4")),
    ],
    "boursier2022-fig2": [
        Change("a large scale", ("initialization.scale=3.0",),
               ("initial-norms", "aligned-plus", "aligned-minus", "aligned-norms", "negative-idle", "one-group",
                "two-kinks", "kink-1", "kink-2", "angle-1", "angle-2", "below-linear", "minimum-norm")),
        Change("a tiny scale", ("initialization.scale=1e-9",), ("positive-fitted", "both-fitted")),
        Change("a leaky ReLU", (HALF_LINEAR,), ("turned", "angle-1", "kink-1", "kink-2", "minimum-norm")),
        Change("labels exchanged", ("dataset.random_labels=1.0",), ("one-group",)),
    ],
    "boursier2022-fig3": [
        Change("a large scale", ("initialization.scale=3.0",),
               ("first-saddle", "first-flat", "saddle-loss", "second-saddle", "predicted-curve")),
        Change("a moderate scale", ("initialization.scale=1e-2",), ("small-gradients",)),
        Change("a tiny scale", ("initialization.scale=1e-9",), ("zero-loss",)),
        Change("inputs at 20 degrees", ("dataset.x=[[1.3], [2.0]]", "optimizer.iterations=100000"), ("rate",)),
    ],
    "boursier2022-fig4": [
        Change("a large scale", ("initialization.scale=1.0",),
               ("alignment", "alignment-loss", "two-groups", "turn-before", "saddle-loss", "saddle-flat", "sparse")),
        Change("labels that rise", ("dataset.y=[-0.7, -0.5, -0.1, 0.0, 0.7]",), ("left", "growth", "turn-after")),
        Change("fewer iterations", ("optimizer.iterations=260000",), ("zero-loss",)),
    ],
    "boursier2022-fig5": [
        Change("a moderate scale", ("initialization.scale=1.0", "optimizer.iterations=100000"),
               ("lazy", "kinks", "loss"), ("large",)),
        Change("the small scale of Figure 4",
               ("initialization.scale=1e-4", "optimizer.iterations=300000", "seed=1"),
               ("no-saddle", "faster", "lazy", "loss"), ("large",)),
    ],
    "boursier2022-fig6": [
        Change("five points that are far from orthogonal",
               (FIVE_POINTS, *REDRAWN, "initialization.scale=1e-3", "optimizer.lr=2e-3", "seed=1",
                "architecture.width=60"),
               ("two-directions", "alignment-loss", "alignment-norm", "first-cluster", "first-direction",
                "second-cluster", "second-direction")),
        Change("a linear network", ("architecture.activation=linear",), ("final-spread",)),
    ],
    "boursier2022-fig7": [
        Change("a large scale", (*REDRAWN, "initialization.scale=10"), ("saddle", "saddle-time", "two-components")),
        Change("random labels", ("dataset.random_labels=1.0",), ("saddle", "saddle-time", "two-components")),
        Change("fewer iterations", ("optimizer.iterations=86000",), ("zero-loss",)),
    ],
    "boursier2022-extra-norm": [
        Change("output weights of size 1", LARGE_OUTPUTS,
               ("limit", "monotone", "two-neurons", "collinear", "few-saddles")),
        Change("a leaky ReLU", (HALF_LINEAR,), ("limit", "monotone", "collinear", "few-norm", "few-kinks")),
        Change("as many neurons as meet Assumption 3", ("architecture.width=200",),
               ("few-loss", "few-norm", "few-kinks", "few-saddles"), FEW),
        Change("an early end", ("optimizer.stop_below=1e-8",), ("interpolates", "few-loss")),
    ],
}  # fmt: skip
