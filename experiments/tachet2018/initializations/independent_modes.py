"""Weights by the activity of neurons of each class on their points.

Neurons start as Tachet des Combes et al. 2018 ask for (H1-H3, Appendix B), so that each class is
learnt by neurons of its own: a neuron of class k is active on the points of class k (`w x > 0`) and
on no other point (`w x <= 0`: H2), with an output weight towards its class (H3). Where points of
one class have no negative inner product, and points of the two classes no positive one (H1), it
stays so: Lemma 3.1. The paper asks for positive inner products within a class; products of 0 are
allowed here, because the orthogonal points of its own Appendix A.7 have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from pydantic import Field

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Finding, Floats, Initialization, Positive, Problem, Sections, Streams

ROUNDING = 1e-12
"""Inner products this small, relative to the norms, count as 0."""


class IndependentModes(Initialization, kind="independent_modes"):
    """Neurons that are each active on one class only (Tachet des Combes et al. 2018, assumptions H1
    to H3, Appendix B).

    One list per class: D_1 (label 1) first, then D_2 (label -1). Data or starts that violate the
    assumptions are refused. There are no biases; inner layers of a deep network are diagonal.
    """

    example = """\
architecture: {kind: two_layer, width: 2}
initialization: {kind: independent_modes, y: [[0.1], [0.1]], z: [[0.1], [0.1]]}
"""
    y: list[list[Positive]] = Field(min_length=2, max_length=2)
    """Preactivation of each neuron on its class, in least squares where no weight treats all
    points alike.
    """
    z: list[list[Positive]] = Field(min_length=2, max_length=2)
    """Size of each neuron's weights towards its class: the output weights of D_2 are minus
    these.
    """

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield the network's mistakes: several outputs, widths other than the numbers of
        neurons, a bias, a slope.
        """
        architecture = sections.get("architecture")
        counts = [len(neurons) for neurons in self.y]
        if counts != [len(neurons) for neurons in self.z]:
            yield ("initialization", "z"), "must have lists of the same lengths as y"
        if architecture is None or not architecture.multiplied:
            return
        key = "width" if architecture.two_layers else "widths"
        widths = getattr(architecture, key, None)
        if widths is None:
            return
        for name, wrong, needed in (
            ("outputs", (architecture.outputs or 1) != 1, "1"),
            ("activation", architecture.sigma.negative_slope != 0, "relu"),
            ("bias", getattr(architecture, "bias", False), "false"),
        ):
            if wrong:
                yield (
                    ("architecture", name),
                    f"must be {needed} for the initialization independent_modes",
                )
        if {*(widths if key == "widths" else [widths])} != {sum(counts)}:
            yield (
                ("architecture", key),
                f"must be {sum(counts)}, the number of neurons in initialization.y",
            )

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return the weights of a two-layer or a deep network without biases.

        Raises:
            InputError: the data violate H1, the neurons H2, or a class with points has no neuron.
        """
        data = problem.dataset
        classes = [
            np.unique(data.x[data.y == label], axis=0) for label in (1, -1)
        ]  # some may have no points
        _check_data(*classes)
        z = np.concatenate(self.z)  # (h,)
        first, *inner, last = problem.shapes
        hidden = np.concatenate([_rows(k, classes, self.y[k]) for k in range(2)])  # (h, d)
        signs = np.repeat([1.0, -1.0], [len(neurons) for neurons in self.z])
        output = (signs * z).reshape(problem.shapes[last])
        return {first: hidden, **{name: np.diag(z) for name in inner}, last: output}


def _check_data(x_1: Floats, x_2: Floats) -> None:
    """Raise InputError for points (n, d) of both classes that violate H1."""
    for k, x in enumerate((x_1, x_2), 1):
        if (_cosines(x, x) < -ROUNDING).any():
            raise InputError(f"dataset: points of class {k} have a negative inner product (H1)")
    if (_cosines(x_1, x_2) > ROUNDING).any():
        raise InputError("dataset: points of classes 1 and 2 have a positive inner product (H1)")


def _cosines(x: Floats, y: Floats) -> Floats:
    lengths = [np.linalg.norm(points, axis=1) for points in (x, y)]
    return np.asarray(x @ y.T / np.maximum(np.outer(*lengths), 1e-300))


def _rows(k: int, classes: list[Floats], y: list[float]) -> Floats:
    """Return the hidden weights of the neurons of class k: least-norm, least-squares solutions
    of `w x = y`.
    """
    x = classes[k]
    opposite = classes[1 - k]
    if not len(x):
        if y:
            raise InputError(
                f"initialization.y: class {k + 1} has no points, so it can have no neurons"
            )
        return np.empty((0, x.shape[1]))
    if not y:
        raise InputError(f"initialization.y: class {k + 1} has points and needs a neuron")
    unit = np.linalg.pinv(x) @ np.ones(len(x))  # (d,)
    if not (x @ unit > 0).all():
        raise InputError(
            f"initialization: the neurons of class {k + 1} would not be active on all of its points"
            " (H2)"
        )
    if (opposite @ unit > ROUNDING * np.linalg.norm(unit) * np.linalg.norm(opposite, axis=1)).any():
        raise InputError(
            f"initialization: neurons of class {k + 1} would be active on class {2 - k} (H2)"
        )
    return np.outer(y, unit)
