"""From a config to the training problem.

Its data are read or drawn, and checked against loss, network and optimizer.
"""

from __future__ import annotations

import math
from contextlib import nullcontext

import numpy as np

from dynamics_cli.errors import InputError
from dynamics_cli.gradients.derivatives import trained_among
from dynamics_cli.kinds import Descent, Loss, Problem, RunConfig, Samples
from dynamics_cli.kinds.base import bundled, loaded
from dynamics_cli.kinds.registry import blamed
from dynamics_cli.process import alone, plain_process
from dynamics_cli.training.repeatable import UNTRIED, refuse_random_numbers, repeatable_samples


@plain_process()
@blamed()
def build_problem(config: RunConfig, dataset: Samples | None = None) -> Problem:
    """Load or draw the data and check that it fits the loss, the network and the optimizer.

    Nothing big is allocated.

    Args:
        config: the validated config.
        dataset: the config's data set, where it was built before.

    Raises:
        DataMissingError: a data file is not there.
        InputError: the data cannot be used, or foreign code draws random numbers of its own.
    """
    config = config.model_copy(update={"dataset": loaded(config.dataset, "dataset").resolve()})
    # foreign code may seed the generators of the process
    with nullcontext() if bundled(config) else alone():
        if dataset is None:
            dataset = repeatable_samples(config)
        check_labels(dataset, config.loss, config)
        size: int | None = getattr(config.optimizer, "batch_size", None)
        if (
            size is not None
            and size > dataset.n
            and getattr(config.optimizer, "samples", None) is None
        ):
            raise InputError(
                f"optimizer.batch_size is {size}, the training set has {dataset.n} samples"
            )
        problem = Problem(config, dataset, config.loss, config.architecture.shapes(dataset.d), size)
        if isinstance(config.optimizer, Descent):
            trained = trained_among(config.architecture, problem.shapes)
            config.optimizer.refuse_weights({name: problem.shapes[name] for name in trained})
        if config.optimizer.is_flow and problem.has_modes:
            raise InputError(
                f"optimizer.kind {config.optimizer.kind}: the network has layers that differ in"
                " training, such as dropout or batch normalisation; take gd with a small step"
            )
        refuse_random_numbers(problem)
        refuse_small_batches(problem)
        return problem


def refuse_small_batches(problem: Problem) -> None:
    """Refuse batches that are too small for a network that takes statistics of a batch in training.

    The network is tried on the smallest batch of an epoch, where that is a single sample or shorter
    than the others. A network that fails on a whole batch too has another fault.

    Raises:
        InputError: the network fails on the smallest batch alone.
    """
    size = problem.smallest_batch
    whole = problem.batch_size or problem.dataset.n
    never = problem.iterations < problem.steps_per_epoch
    if (size == whole > 1) or never or not problem.has_modes:
        return
    failure = _failure_in_training(problem, size)
    if failure is None or _failure_in_training(problem, max(whole, 2)) is not None:
        return
    batches = "each batch"
    remedy = "take larger batches"
    if size < whole:
        batches = "the last batch of an epoch"
        remedy = "give optimizer.drop_last: true, or another batch_size"
    raise InputError(
        f"optimizer.batch_size: {batches} has size {size}, on which the network fails in training"
        f" ({failure}); {remedy}"
    )


def _failure_in_training(problem: Problem, size: int) -> str | None:
    """Return why the network in training mode has no outputs for `size` samples, or None."""
    import torch

    from dynamics_cli.draws import drawing_apart

    data = problem.dataset
    x = torch.from_numpy(data.x[np.arange(size) % data.n]).to(getattr(torch, problem.config.dtype))
    architecture = problem.config.architecture
    with drawing_apart(bundled=bundled(architecture)), torch.no_grad():
        network = architecture.build(data.d).to(x.dtype).train()
        try:
            h = network(x)
        except UNTRIED as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None if h.isfinite().all() else "its outputs are not finite"


def check_labels(dataset: Samples, loss: Loss, config: RunConfig) -> None:
    """Refuse labels that do not suit the loss and the outputs of the network.

    Raises InputError: there are others.
    """
    kind = config.loss.kind
    outputs = getattr(config.architecture, "outputs", None) or 1
    _check_positions(dataset, loss, config)
    columns = math.prod(dataset.y.shape[1 + dataset.positions :])
    if loss.labels == "real":
        if outputs != columns:
            needed = (
                "vectors of as many numbers (dataset.one_hot: true makes them of classes), or one"
                " output"
            )
            if columns > 1:
                needed = f"architecture.outputs: {columns}"
            beside = f"labels of {columns} numbers beside {outputs} outputs"
            raise InputError(f"dataset: {beside}; the {kind} loss needs {needed}")
        return
    if columns > 1:
        raise InputError(
            f"dataset: labels are vectors of {columns} numbers, the {kind} loss needs one label a"
            " sample"
        )
    labels = np.arange(outputs)
    needed = f"a class number 0..{outputs - 1}"
    if dataset.positions:
        labels = np.arange(-1, outputs)
        needed += ", or -1 for no label"
    if loss.labels == "signs":
        labels = np.array([-1, 1])
        needed = "-1 or 1"
        if dataset.positions:
            labels = np.array([-1, 1, np.nan])
            needed += ", or NaN for no label"
    for name in ("y", "y_test"):
        y = getattr(dataset, name)
        if y is None:
            continue
        allowed = np.isin(y, labels) | (np.isnan(y) & np.isnan(labels).any())
        if not allowed.all():
            place = np.unravel_index(np.argmin(allowed), y.shape)
            at = ", ".join(map(str, place))
            if loss.labels == "classes" and y[place] >= outputs and (y == np.rint(y)).all():
                classes = max(int(y.max()) + 1, dataset.classes or 0)
                needed += f" (architecture.outputs: {classes} takes all)"
            raise InputError(
                f"dataset: {name}[{at}] is {y[place]:g}, the {kind} loss needs {needed}"
            )
    if loss.labels == "classes" and dataset.classes is not None and dataset.classes > outputs:
        raise InputError(
            f"dataset: samples may have any of {dataset.classes} classes, the {kind} loss needs"
            f" architecture.outputs: {dataset.classes}"
        )


def _check_positions(dataset: Samples, loss: Loss, config: RunConfig) -> None:
    """Refuse labels at each position beside a network of one output a sample, and the reverse.

    Raises InputError: they differ, are at other positions, or no position has a label.
    """
    network = config.architecture
    if dataset.positions != network.at_positions:
        given = "labels at each position" if dataset.positions else "one label a sample"
        gives = "an output at each position" if network.at_positions else "one output a sample"
        remedy = ""
        if "predict" in type(network).model_fields:
            wanted = "give" if dataset.positions else "leave out"
            remedy = f"; {wanted} architecture.predict: every"
        raise InputError(
            f"dataset: {given}, but architecture.kind {network.kind} gives {gives}{remedy}"
        )
    if not dataset.positions:
        return
    positions = dataset.y.shape[1]
    tokens = getattr(network, "tokens", positions)
    if tokens != positions:
        raise InputError(
            f"architecture.tokens: {tokens} tokens, but labels are at {positions} positions; give"
            f" tokens: {positions}"
        )
    if loss.at_positions(dataset.y) != dataset.positions:
        needed = "class numbers (n, T)"
        if loss.labels == "real":
            needed = "numbers (n, T, k)"
        shape = dataset.y.shape
        raise InputError(
            f"dataset: labels {shape} at positions, the {loss.kind} loss needs {needed}"
        )
    for y in (dataset.y, dataset.y_test):
        if y is not None and not loss.labelled(y).any():
            raise InputError("dataset: no position has a label")
