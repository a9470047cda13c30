"""Initial weights from which each class is learnt by neurons of its own (Tachet des Combes et al. 2018, H1-H6, App. B).

A neuron of class k starts active on the points of class k (`w x > 0`) and on no other point (`w x <= 0`: H2, H5), with
a positive weight towards its class (H3, H6). Where points of one class have no negative inner product, and points of
two classes no positive one (H1, H4), it stays so: Lemmas 3.1 and A.1. The paper asks for positive inner products
within a class; products of 0 are allowed here, because the orthogonal points of its own Appendix A.7 have them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.initialization import IndependentModesInitialization
from dynamics_cli.datasets import Dataset
from dynamics_cli.errors import InputError

Floats = NDArray[np.float64]
ROUNDING = 1e-12
"""Inner products this small, relative to the norms, count as 0."""


def independent_modes(
    section: IndependentModesInitialization, shapes: Mapping[str, tuple[int, ...]], dataset: Dataset, loss: str
) -> dict[str, Floats]:
    """Return the weights of a two-layer or a deep network without biases, by the names in `shapes`.

    Raises:
        InputError: the data violate H1 (H4), the neurons H2 (H5), or a class with points has no neuron.

    """
    classes = class_points(dataset, len(section.y), loss)
    _check_data(classes)
    hidden = np.concatenate([_rows(k, classes, section.y[k]) for k in range(len(classes))])  # (h, d)
    z = np.array([value for neurons in section.z for value in neurons])  # (h,)
    owner = np.repeat(np.arange(len(classes)), [len(neurons) for neurons in section.y])  # (h,)
    names = list(shapes)
    parameters = {names[0]: hidden}
    for name in names[1:-1]:
        parameters[name] = np.diag(z if section.inner is None else np.full(len(z), section.inner))
    last = shapes[names[-1]]
    if len(last) == 2 and last[0] > 1:
        output = np.where(owner == np.arange(last[0])[:, None], z, section.others)  # (C, h)
    else:
        output = np.where(owner == 0, z, -z).reshape(last)
    parameters[names[-1]] = output
    return parameters


def class_points(dataset: Dataset, classes: int, loss: str) -> list[Floats]:
    """Return the distinct points of every class, labels 1 and -1 or 0, 1, ... for cross entropy; some may have none."""
    labels = range(classes) if loss == "cross_entropy" else (1, -1)
    return [np.unique(dataset.x[dataset.y == label], axis=0) for label in labels]


def _check_data(classes: list[Floats]) -> None:
    lengths = [np.linalg.norm(x, axis=1) for x in classes]
    for k, x in enumerate(classes):
        for other in range(k, len(classes)):
            products = x @ classes[other].T / np.maximum(np.outer(lengths[k], lengths[other]), 1e-300)
            if other == k and (products < -ROUNDING).any():
                raise InputError(f"dataset: points of class {k + 1} have a negative inner product (H1)")
            if other != k and (products > ROUNDING).any():
                pair = f"{k + 1} and {other + 1}"
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
    for other, points in enumerate(classes):
        limit = ROUNDING * reach * np.linalg.norm(points, axis=1)
        if other != k and (points @ unit > limit).any():
            raise InputError(f"initialization: neurons of class {k + 1} would be active on class {other + 1} (H2)")
    return np.outer(y, unit)
