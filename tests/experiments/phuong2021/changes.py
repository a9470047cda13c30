"""Changes of the runs of each figure under which its claims fail."""

from __future__ import annotations

from tests.experiments.falsify import Change

SCALES = tuple(f"scale 1.0e-{k}" for k in (1, 2, 3, 4))
FLOWS = tuple(f"flow {one}" for one in ("2 11", "2 13", "2 18", "2 20", "3 13", "3 31"))
# fmt: off
FROZEN = Change("a step of 1e-9", ("optimizer.epochs=1", "optimizer.lr=1e-9"), ("learnt",),
                untrained="that the data are learnt fails only where they are not")
USUAL = ("initialization.factor=1.0",)
CHANGES = {
    "phuong2021-fig1": [
        Change("the usual initial scale", USUAL, ("rank", "tail", "second", "directions", "correlation")), FROZEN,
    ],
    "phuong2021-fig2": [
        Change("the usual initial scale", USUAL,
               ("correlation", *(f"{id}-{k}" for id in ("rank", "tail", "second", "directions") for k in (1, 2, 3)))),
        FROZEN,
    ],
    "phuong2021-extra-theorem1": [
        Change("the largest scale for all", ("initialization.scale=0.1",), ("rate", "kkt-trained"), SCALES),
        Change("the smallest scale for all", ("initialization.scale=1.0e-4",), ("rate-late", "kept"), SCALES),
        Change("neurons that are never off", ("architecture.activation={kind: leaky_relu, slope: 0.5}",),
               ("limit", "rate", "share", "function", "kkt-trained"), SCALES),
        Change("a scale of 1", ("initialization.scale=1.0",), ("two-groups", "lemma-1", "function"), SCALES + FLOWS),
        Change("a start that is not balanced", ("initialization={kind: default_scaled, factor: 0.5}",),
               ("output", "signs", "lemma-1"), SCALES + FLOWS),
        Change("the squared loss", ("loss={kind: mse}",), ("lemma-1", "lemma-3"), FLOWS,
               untrained="a loss that pulls outputs back from above the label ends at a fit of labels, not of signs"),
    ],
    "phuong2021-extra-dead": [
        Change("a step of 20", ("optimizer.lr=20.0",), ("bound", "attained", "stays", "decided"),
               ("orthogonal 1", "orthogonal 3", "cone 1", "cone 2"),
               untrained="networks whose neurons are dead fit nothing: that is what the figure is about"),
    ],
    "phuong2021-fig3": [
        Change("random labels", ("dataset.random_labels=1.0",), ("right", "depth"),
               untrained="320 updates do not fit them: units of the last layers die"),
        Change("a step of 1e-9", ("optimizer.epochs=1", "optimizer.lr=1e-9"), ("last-gap",),
               untrained="that training separates fails where there is none; labels fitted otherwise separate too"),
    ],
    "phuong2021-fig4": [
        Change("the usual scale of the last layers", ("initialization={kind: default_scaled, factor: 1.0}",),
               ("few",)),
        Change("a step of 1e-9", ("optimizer.epochs=1", "optimizer.lr=1e-9"), ("few", "by-sign", "mixed"),
               untrained="the sign of the next layer orders the outer neurons under every training that we tried"),
    ],
}
# fmt: on
