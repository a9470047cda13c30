"""Weights by the activity of neurons of each class on their points.

Neurons start as Tachet des Combes et al. 2018 ask for (H1-H6, Appendix B), so that each class is learnt by neurons
of its own: a neuron of class k is active on the points of class k (`w x > 0`) and on no other point (`w x <= 0`: H2,
H5), with a positive weight towards its class (H3, H6). Where points of one class have no negative inner product, and
points of two classes no positive one (H1, H4), it stays so: Lemmas 3.1 and A.1. The paper asks for positive inner
products within a class; products of 0 are allowed here, because the orthogonal points of its own Appendix A.7 have
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Finding, Floats, Initialization, Positive, Problem, Sections, Streams

ROUNDING = 1e-12
"""Inner products this small, relative to the norms, count as 0."""


class IndependentModes(Initialization, kind="independent_modes"):
    """Neurons that are each active on one class only (Tachet des Combes et al. 2018, assumptions H1 to H6, Appendix B).

    One list per class: D_1 (label 1, or class 0) first, then D_2 (label -1, or class 1), and so on. Data or starts that
    violate the assumptions are refused. There are no biases; inner layers of a deep network are diagonal.
    """

    example = """\
architecture: {kind: two_layer, width: 2}
initialization: {kind: independent_modes, y: [[0.1], [0.1]], z: [[0.1], [0.1]]}
"""
    y: list[list[Positive]] = Field(min_length=2)
    """Preactivation of each neuron on its class, in least squares where no weight treats all points alike."""
    z: list[list[Positive]] = Field(min_length=2)
    """Size of each neuron's weight towards its class; with a single output the weights of D_2 are minus these."""
    inner: Positive | None = None
    """Diagonal of the inner layers of a deep network; by default each neuron's z."""
    others: Annotated[float, Field(le=0)] = 0.0
    """Weight of each neuron towards the outputs of other classes (several outputs only)."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield the network's mistakes: widths other than the numbers of neurons, a bias, a slope."""
        architecture = sections.get("architecture")
        counts = [len(neurons) for neurons in self.y]
        if counts != [len(neurons) for neurons in self.z]:
            yield ("initialization", "z"), "must have lists of the same lengths as y"
        if architecture is None or architecture.kind not in ("two_layer", "fully_connected"):
            return
        outputs = getattr(architecture, "outputs", None) or 1
        classes = 2 if outputs == 1 else outputs
        if len(counts) != classes:
            yield ("initialization", "y"), f"must have one list for each of {classes} classes, not {len(counts)}"
        if architecture.activation.kind != "relu":
            yield ("architecture", "activation"), "must be relu for the initialization independent_modes"
        key = "width" if architecture.kind == "two_layer" else "widths"
        widths = getattr(architecture, key)
        if getattr(architecture, "bias", False):
            yield ("architecture", "bias"), "must be false for the initialization independent_modes"
        if {*(widths if key == "widths" else [widths])} != {sum(counts)}:
            yield ("architecture", key), f"must be {sum(counts)}, the number of neurons in initialization.y"

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return the weights of a two-layer or a deep network without biases.

        Raises:
            InputError: the data violate H1 (H4), the neurons H2 (H5), or a class with points has no neuron.
        """
        shapes = problem.shapes
        labels = range(len(self.y)) if problem.config.loss.labels == "classes" else (1, -1)
        data = problem.dataset
        classes = [np.unique(data.x[data.y == label], axis=0) for label in labels]  # some may have no points
        _check_data(classes)
        hidden = np.concatenate([_rows(k, classes, self.y[k]) for k in range(len(classes))])  # (h, d)
        z = np.array([value for neurons in self.z for value in neurons])  # (h,)
        owner = np.repeat(np.arange(len(classes)), [len(neurons) for neurons in self.y])  # (h,)
        names = list(shapes)
        parameters = {names[0]: hidden}
        for name in names[1:-1]:
            parameters[name] = np.diag(z if self.inner is None else np.full(len(z), self.inner))
        last = shapes[names[-1]]
        if len(last) == 2 and last[0] > 1:
            output = np.where(owner == np.arange(last[0])[:, None], z, self.others)  # (C, h)
        else:
            output = np.where(owner == 0, z, -z).reshape(last)
        parameters[names[-1]] = output
        return parameters


def _check_data(classes: list[Floats]) -> None:
    lengths = [np.linalg.norm(x, axis=1) for x in classes]
    for k, x in enumerate(classes):
        for j in range(k, len(classes)):
            products = x @ classes[j].T / np.maximum(np.outer(lengths[k], lengths[j]), 1e-300)
            if j == k and (products < -ROUNDING).any():
                raise InputError(f"dataset: points of class {k + 1} have a negative inner product (H1)")
            if j != k and (products > ROUNDING).any():
                pair = f"{k + 1} and {j + 1}"
                raise InputError(f"dataset: points of classes {pair} have a positive inner product (H1)")


def _rows(k: int, classes: list[Floats], y: list[float]) -> Floats:
    """Return the hidden weights of the neurons of class k: least-norm, least-squares solutions of `w x = y`."""
    x = classes[k]
    if not len(x):
        if y:
            raise InputError(f"initialization.y: class {k + 1} has no points, so it can have no neurons")
        return np.empty((0, x.shape[1]))
    if not y:
        raise InputError(f"initialization.y: class {k + 1} has points and needs a neuron")
    unit = np.linalg.pinv(x) @ np.ones(len(x))  # (d,)
    if not (x @ unit > 0).all():
        raise InputError(f"initialization: the neurons of class {k + 1} would not be active on all of its points (H2)")
    reach = float(np.linalg.norm(unit))
    for j, points in enumerate(classes):
        limit = ROUNDING * reach * np.linalg.norm(points, axis=1)
        if j != k and (points @ unit > limit).any():
            raise InputError(f"initialization: neurons of class {k + 1} would be active on class {j + 1} (H2)")
    return np.outer(y, unit)
