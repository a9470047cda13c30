"""`dyn.measure`: a table of measures of a network, at one state or at several checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics_cli import kinds
from dynamics_cli.errors import InputError, needing
from dynamics_cli.instruments.checkpoints import CheckpointState, listed, optimizer_state
from dynamics_cli.instruments.instrument import Instrument, measuring
from dynamics_cli.kinds import Problem
from dynamics_cli.kinds.history import History
from dynamics_cli.runs.run import FEW_NUMBERS, columns_in
from dynamics_cli.text import Table

if TYPE_CHECKING:
    import xarray


class Measured(Table):
    """The table of `dyn.measure`."""

    arrays: dict[str, list[kinds.Floats]]
    """What each measure gave at each checkpoint."""

    def to_xarray(self) -> xarray.Dataset:
        """Return the measures as an `xarray.Dataset` along `iteration`.

        Raises UsageError: xarray is not installed.
        """
        with needing("to_xarray", "xarray"):
            import xarray
        variables = {}
        for name, values in self.arrays.items():
            axes = [f"{name}_{k}" for k in range(values[0].ndim)]
            variables[name] = (["iteration", *axes], np.stack(values))
        return xarray.Dataset(variables, coords={"iteration": self.column("iteration")})


def measure(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    loss: Any = "cross_entropy",
    measures: Sequence[Any] = ("train_loss", "gradient_norm", "sharpness"),
    checkpoints: Any = None,
    step: int | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    **given: Any,
) -> Measured:
    """Measure a network of torch, as runs are measured.

    At its weights, or at each of several checkpoints. A whole copy of the model computes, with its
    attributes and forward hooks, in its eval mode, in blocks of samples, outside of
    `torch.autocast`, `torch.no_grad` and `torch.inference_mode`; the model itself stays as it is.
    In eval mode dropout is off, so measures describe the whole network, not the loss with
    dropout that your loop descends; a model that draws random numbers in eval mode too is refused.
    No derivative is taken of weights without `requires_grad`; a warning names them.

    Args:
        model: a module with one tensor of outputs, samples along the first axis.
        x: inputs (n, ...): images, tokens, rows; a tuple of them for several arguments, a
            dictionary for arguments by name; or a `DataLoader` of pairs of inputs and labels,
            without `y`, whose data set is read sample by sample as often as inputs are needed: a
            block of them is in memory, and all labels.
        y: labels (n, ...): numbers of the shape of the outputs, ±1, or classes. Labels at each
            position of a sequence are classes (n, T), -1 for none, or numbers (n, T, k), NaN for
            none; a kind of loss takes the mean over those that exist.
        loss: a kind of loss, its keys as a mapping; or a function of outputs and labels that gives
            a number for each sample, or their mean or sum, such as
            `torch.nn.functional.cross_entropy`; or a function `(model, batch)`, with these names,
            that gives the mean loss of a batch, which is `x` or what the `DataLoader` gives. Both
            functions may give `(sum, count)`, the sum of losses over labels and their number, where
            samples have different numbers of labels. Measures of outputs, such as `gauss_newton`
            and measures of the kernel, cannot see them behind a function of model and batch.
        measures: kinds, such as `"sharpness"` or `{"kind": "sharpness", "blocks": "layer"}`, or
            functions of a state. All measure every checkpoint, whatever their `at`.
        checkpoints: a state dict, a file that `torch.load(weights_only=True)` reads, a module, or a
            list of them, in the order of training; with their iterations as `{100: state_dict}` or
            `[(100, state_dict)]`. Measures of the last update, such as `update`, compare a
            checkpoint with the checkpoint one iteration before, and are NaN where it is not given.
        step: the iteration of a single checkpoint, or of the model's own weights.
        progress: called with how many numbers are measured, of how many.
        given: further settings, as follows.
        start: the initial weights, as a checkpoint or a module, for distances and all that compares
            with them.
        parameters: patterns of names, such as `"layer4.*"`: of other weights no derivative is
            taken.
        x_test: held-out inputs, for `test_loss` and `test_accuracy`.
        y_test: held-out labels.
        optimizer: the Adam, AdamW or RMSprop of torch that trains the model, for
            `preconditioned_sharpness`; its state at a checkpoint is that which the checkpoint
            holds as `optimizer` or `optimizer_state_dict`, or Lightning's.
        seed: of random vectors, as in a run.
        device: where the copy computes, such as `cuda`; samplers and Lanczos vectors stay on the
            CPU, in `float64`.
        dtype: precision of the network, by default `float64` on the CPU and `float32` elsewhere,
            whatever the weights have; complex weights are pairs of such numbers. In `float32`
            eigenvectors are found to a residual of 1e-5.

    Returns:
        A row for each checkpoint: the file as `checkpoint`, `iteration` (as given; behind `step`,
        `iter` or `epoch` in the name of the file, or the only whole number in it; of state dicts
        without one the place in the list), and the measures, named as columns of runs: up to 16
        numbers of a measure are columns `name.1`, `name.2`, ..., more are an array in the column
        `name`. `arrays` has the arrays of all by name.

    Raises:
        InputError: the model, data, loss, checkpoints and measures do not fit together; the message
            says why.
        ConfigError: there is no such loss or measure, or it has no such key.
    """
    with measuring(given.get("device", "cpu")):
        states = listed(checkpoints, step)
        instrument = Instrument(model, x, y, loss=loss, measures=measures, **given)
        return _table(instrument, states, progress)


def _table(
    instrument: Instrument,
    states: Sequence[CheckpointState],
    progress: Callable[[int, int | None], None] | None,
) -> Measured:
    """Return a row of numbers for each state, and the arrays (K, ...) of each measure."""
    table = Measured()
    table.arrays = {name: [] for name in instrument.measures}
    done = 0
    history: History[Problem] = History(instrument.updates)
    _check_updates(instrument, [iteration for iteration, *_ in states])
    for iteration, file, weights in states:
        row: dict[str, Any] = {"iteration": iteration}
        if file is not None:
            row = {"checkpoint": file, **row}
        problem = instrument.problem(weights)
        before = history.before(iteration)
        history.keep(iteration, problem)
        saved = None
        if weights is not None and instrument.preconditioned:
            saved = optimizer_state(weights)
        preconditioner = instrument.preconditioner(problem, saved)
        numbers_of = instrument.at(problem, iteration, before=before, preconditioner=preconditioner)
        for name, numbers in numbers_of:
            table.arrays[name].append(numbers)
            row |= _cells(instrument, name, numbers)
            done += 1
            if progress is not None:
                progress(done, len(states) * len(instrument.measures))
        table.append(row)
    return table


def _check_updates(instrument: Instrument, iterations: Sequence[int]) -> None:
    """Raise InputError where a measure needs the states of updates, and none follow each other."""
    for name, measure in instrument.measures.items():
        run = measure.updates + 1
        windows = (iterations[k : k + run] for k in range(len(iterations) - run + 1))
        followed = (all(b == a + 1 for a, b in pairwise(window)) for window in windows)
        if not any(followed):
            listed = ", ".join(f"({99 + k}, FILE)" for k in range(run))
            raise InputError(
                f"record.measures: {name} is of updates: give checkpoints that follow each other,"
                f" such as checkpoints=[{listed}]"
            )


def _cells(instrument: Instrument, name: str, numbers: kinds.Floats) -> dict[str, Any]:
    """Return the columns of a measure of one state."""
    if not numbers.ndim:
        return {name: float(numbers)}
    if numbers.size > FEW_NUMBERS:
        return {name: numbers}
    columns = columns_in(instrument.config, name, numbers.shape)
    names = [column.name for column in columns]
    return dict(zip(names, numbers.ravel().tolist(), strict=True))
