"""Inputs and labels of users: looked up by numbers of samples, all labels in memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import DataLoader, IterableDataset

from dynamics_cli import kinds
from dynamics_cli.draws import drawing_apart
from dynamics_cli.errors import InputError
from dynamics_cli.training.obstacles import told

LookUp = Callable[[NDArray[np.int64]], Any]
"""Numbers (k,) of samples -> their inputs: a tensor, a tuple or list of tensors by place, or a
mapping by name.
"""
CHANCE = 6
"""Epochs with other samples pass for equal ones with a chance of `10^-CHANCE`."""
COMPARED = 512
TOGETHER = 32
"""Samples, from all over the data, and samples of a part, by which data are told from other data,
and whether they may be cut into parts.
"""


class Data:
    """Training samples, and behind them held-out samples, by their numbers."""

    def __init__(self, x: Any, y: Any, x_test: Any, y_test: Any, *, of_batches: bool) -> None:
        """Take inputs and labels as `measure` does; for a loss of batches labels are 0.

        Raises InputError: inputs and labels do not fit, or are of no known form.
        """
        look_up, self.labels = _looked_up(x, y, of_batches)
        self._look_ups = [look_up]
        self.trained = len(self.labels)
        labels = self.labels
        if x_test is not None:
            look_up, held_out = _looked_up(x_test, y_test, of_batches)
            self._look_ups.append(look_up)
            labels = torch.cat([labels, held_out])
        self._all_labels = labels
        self.positions = False
        """Whether labels are given at each position of a sequence."""
        self.held_out = len(labels) - self.trained

    @cached_property
    def samples(self) -> kinds.Samples:
        """The numbers of samples as inputs, with labels."""
        labels = self._all_labels
        if self.positions:
            rows = labels.double().numpy()
        else:
            rows = _rows(labels)
        return kinds.make_samples(
            np.arange(len(labels), dtype=float)[:, None],
            rows,
            trained=self.trained if self.held_out else None,
            positions=self.positions,
            origin="measure",
        )

    def count_labels(self, counts: Tensor) -> None:
        """Take the numbers of labels of all samples as labels, for a loss of batches."""
        self._all_labels = counts
        self.labels = counts[: self.trained]
        vars(self).pop("samples", None)  # of other counts

    def inputs(self, numbers: NDArray[np.int64]) -> Any:
        """Return the inputs of samples that are all trained, or all held out."""
        held_out = bool((numbers[:1] >= self.trained).any())
        return self._look_ups[held_out](numbers - held_out * self.trained)

    def digest(self) -> str:
        """Return a checksum of all labels, and of the inputs of samples from all over the data."""
        samples = self.samples
        digest = hashlib.sha256(np.ascontiguousarray(samples.y).tobytes())
        numbers = from_all_over(samples.n)
        for part in np.array_split(numbers, -(-len(numbers) // TOGETHER)):
            for inputs in tree_leaves(self.inputs(part)):
                digest.update(torch.as_tensor(inputs).cpu().double().numpy().tobytes())
        return digest.hexdigest()[:16]


def from_all_over(count: int) -> NDArray[np.int64]:
    """Return at most `COMPARED` of the numbers 0 .. count - 1, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, COMPARED)).astype(np.int64))


def _looked_up(x: Any, y: Any, of_batches: bool) -> tuple[LookUp, Tensor]:
    """Return how inputs are looked up, and all labels (n, ...); for a loss of batches these are 0.

    A `DataLoader` gives both: its data set is read sample by sample as often as inputs are needed,
    in the order of the numbers, so that its batches are never held together.
    """
    try:
        if isinstance(x, DataLoader):
            return _of_loader(x, of_batches)
        if isinstance(x, Mapping):
            x = dict(x)
        if isinstance(x, list) and x and all(isinstance(b, tuple | list | Mapping) for b in x):
            raise InputError(
                "x is a list of batches: join inputs and labels by torch.cat, or give a DataLoader"
            )
        x = tree_map(lambda values: torch.as_tensor(values).detach(), x)
        sizes = {len(t) for t in tree_leaves(x)}
        if of_batches:
            labels = torch.zeros(max(sizes))
        else:
            labels = torch.as_tensor(y).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        needed = "tensors or arrays, or a DataLoader of pairs (inputs, labels) in place of both"
        raise InputError(f"inputs and labels must be {needed}: {told(error)}") from error
    if sizes != {len(labels)} or not all(t.numel() for t in tree_leaves(x)):
        shapes = ", ".join(str(tuple(t.shape)) for t in tree_leaves(x))
        raise InputError(
            f"inputs {shapes} and labels {tuple(labels.shape)} differ in length, or are empty"
        )
    return lambda numbers: tree_map(lambda t: t[torch.from_numpy(numbers)], x), labels


def _epochs_tried(n: int) -> int:
    """Return the number of epochs in which samples are compared.

    n samples less a random one are the same by chance in one of n epochs.
    """
    return 2 + math.ceil(CHANCE / math.log10(max(n, 2)))


def _of_loader(loader: DataLoader[Any], of_batches: bool) -> tuple[LookUp, Tensor]:
    if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
        raise InputError(
            "the DataLoader needs a data set whose samples have numbers, and a batch size"
        )
    # a sampler may leave some out, but each time the same
    generator = getattr(loader.sampler, "generator", None)
    drawn = None if generator is None else generator.get_state()
    with drawing_apart(bundled=True):
        places, *others = (
            sorted(place for batch in loader.batch_sampler for place in batch)
            for _ in range(_epochs_tried(len(loader.dataset)))  # type: ignore[arg-type]
        )
    if generator is not None:  # the loop's own draws stay as they are
        generator.set_state(drawn)
    if any(again != places for again in others):
        raise InputError(
            "the DataLoader gives other samples in each epoch, as with shuffle=True and"
            " drop_last=True: give one without shuffle or without drop_last, or one of a"
            " torch.utils.data.Subset"
        )

    def batch(numbers: NDArray[np.int64]) -> Any:
        given = loader.collate_fn([loader.dataset[places[k]] for k in numbers])
        if isinstance(given, Mapping):
            return dict(given)
        return given

    if of_batches:
        return batch, torch.zeros(len(places))
    size = loader.batch_size or 1
    labels = []
    for first in range(0, len(places), size):
        _, y = batch(np.arange(first, min(first + size, len(places))))
        labels.append(torch.as_tensor(y))
    return lambda numbers: batch(numbers)[0], torch.cat(labels)


def _rows(labels: Tensor) -> kinds.Floats:
    rows = labels.double().reshape(len(labels), -1).numpy()
    if rows.shape[1] == 1:
        return rows[:, 0]
    return rows
