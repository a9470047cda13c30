"""Measures of a network that somebody else made and trained: `dyn.measure`; `recorder` takes them
in anybody's loop.

A module of torch becomes an `Architecture` (`Given`), a function of outputs and labels a `Loss`
(`OwnLoss`). Rows of `Samples.x` are numbers of samples, by which `Given` looks up inputs of any
form. Begin with `Instrument`.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import PrivateAttr
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parameter import is_lazy
from torch.optim.swa_utils import AveragedModel
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only
from torch.utils.data import DataLoader, IterableDataset

from dynamics_cli import kinds
from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.errors import InputError, needing
from dynamics_cli.kinds import Loss, Measure, Parameters, Problem, State, formulas
from dynamics_cli.recording.measures import measure_of
from dynamics_cli.runs.run import FEW_NUMBERS, columns_in
from dynamics_cli.text import Table, shorten
from dynamics_cli.training.problem import check_labels

if TYPE_CHECKING:
    import xarray

PREFIXES = ("module.", "model.")
"""What wrappers of networks put before the names of weights."""
NESTED = ("state_dict", "model_state_dict", "model")
"""Keys under which checkpoints of training loops hold the state dict."""
_LONGEST = 200
"""Characters of an error of others that a message repeats."""
_ROUNDING = 1e-4
"""Relative difference of numbers that are equal but for rounding, of float32 too."""
_CLOSE = 1e-6
"""The same where the network computes in float64; a layer inside may round to float32."""
_COMPARED = 512
_TOGETHER = 32
"""Samples, from all over the data, and samples of a part, by which it is asked whether the data
may be cut into parts.
"""
Reduction = Literal["mean", "sum"]
BatchLoss = Callable[[nn.Module, Any], Tensor]
"""Module and batch -> the mean loss of the samples in it."""
LookUp = Callable[[NDArray[np.int64]], Any]
"""Numbers (k,) of samples -> their inputs: a tensor, a tuple or list of tensors by place, or a
mapping by name.
"""


class Measured(Table):
    """The table of `dyn.measure`."""

    arrays: dict[str, list[kinds.Floats]]
    """What each measure gave at each checkpoint."""

    def to_xarray(self) -> xarray.Dataset:
        """Return the measures as an `xarray.Dataset` along `iteration`; raises UsageError:
        xarray is not installed.
        """
        with needing("to_xarray", "xarray"):
            import xarray
        variables = {
            name: (("iteration", *(f"{name}_{k}" for k in range(values[0].ndim))), np.stack(values))
            for name, values in self.arrays.items()
        }
        return xarray.Dataset(variables, coords={"iteration": self.column("iteration")})


@contextmanager
def own_modes() -> Iterator[None]:
    """Compute in the modes of runs whatever the caller's are, and keep torch's random state.

    Raises InputError: the model or the loss calls `sys.exit()`.
    """
    plain = (torch.autocast(device, enabled=False) for device in ("cpu", "cuda"))
    try:
        with (
            torch.random.fork_rng(),
            torch.inference_mode(False),
            torch.enable_grad(),
            next(plain),
            next(plain),
        ):
            yield
    except SystemExit as error:
        raise InputError(f"the model or the loss ended the process: {_told(error)}") from error


class Instrument:
    """Measures a network at any of its states; vectors that carry over from a state start the
    next measurement.
    """

    def __init__(
        self,
        model: nn.Module,
        x: Any,
        y: Any,
        *,
        loss: str | Mapping[str, Any] | Loss | Callable[..., Tensor],
        measures: Sequence[str | Mapping[str, Any] | Measure | Callable[[State], Any]],
        start: Any = None,
        parameters: str | Sequence[str] | None = None,
        x_test: Any = None,
        y_test: Any = None,
        seed: int = 0,
        device: str = "cpu",
        dtype: Literal["float32", "float64"] | None = None,
    ) -> None:
        """Copy the model, and take data, loss and measures as `measure` does; `start` are the
        initial weights.

        Raises:
            InputError: model, data, loss and measures do not fit together.
            ConfigError: there is no such loss or measure, or it has no such key.
        """
        dtype = dtype or ("float64" if device == "cpu" else "float32")
        of_batches = (
            callable(loss) and next(iter(inspect.signature(loss).parameters), "") == "model"
        )
        batch_loss: Any = loss if of_batches else None
        if of_batches:
            loss = lambda h, y: h  # noqa: E731
        look_up, labels = _data(x, y, of_batches)
        look_up_test, test = (
            (None, labels[:0]) if x_test is None else _data(x_test, y_test, of_batches)
        )
        n = len(labels)
        numbers = np.arange(n + len(test), dtype=float)[:, None]
        self.samples = kinds.make_samples(
            numbers,
            _rows(torch.cat([labels, test])),
            trained=None if look_up_test is None else n,
            origin="measure",
        )

        def looked_up(numbers: NDArray[np.int64]) -> Any:
            return (
                look_up(numbers)
                if look_up_test is None or numbers[0] < n
                else look_up_test(numbers - n)
            )

        module = _chosen(_copied(model, device, getattr(torch, dtype)), parameters)
        self.network = Given.of(module, looked_up, min(n, 2), batch_loss)
        config = _config(loss, measures, self.network, self.samples, seed=seed, dtype=dtype)
        config = config.model_copy(update={"architecture": self.network})
        at_once = Problem(
            config, self.samples, config.loss, self.network.shapes(self.samples.d)
        ).block_samples(self.network.device)
        for count, first in ((n, 0), (len(test), n)):
            self.network.refuse_mixing(count, first, at_once)
        if isinstance(loss, str | Mapping | Loss):
            check_labels(self.samples, config.loss, config)
        else:
            config = config.model_copy(update={"loss": _own_loss(loss, self.network, labels)})
        self.config = config
        self.start = start
        self.measures = self.problem(None).measures
        self.memories: dict[str, dict[str, Any]] = {name: {} for name in self.measures}

    def problem(self, weights: Any) -> Problem:
        """Return the problem of the network with some weights and buffers; None for those that
        it came with.
        """
        architecture = self.network if weights is None else self.network.at(weights)
        config = self.config.model_copy(update={"architecture": architecture})
        return Problem(config, self.samples, self.config.loss, architecture.shapes(self.samples.d))

    def digest(self) -> str:
        """Return a checksum of all labels, and of the inputs of samples from all over the data."""
        samples = self.samples
        digest = hashlib.sha256(np.ascontiguousarray(samples.y).tobytes())
        numbers = np.unique(
            np.linspace(0, samples.n - 1, min(samples.n, _COMPARED)).astype(np.int64)
        )
        for part in np.array_split(numbers, -(-len(numbers) // _TOGETHER)):
            for inputs in tree_leaves(self.network._look_up(part)):
                digest.update(torch.as_tensor(inputs).cpu().double().numpy().tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def first(self) -> Problem:
        """The problem of the initial weights.

        Raises InputError: they are not known.
        """
        if self.start is None:
            raise InputError("start is missing: the initial weights, with which a measure compares")
        return self.problem(self.start)

    def at(
        self, weights: Any, iteration: int, names: Sequence[str] | None = None
    ) -> Iterator[tuple[str, kinds.Floats]]:
        """Yield the name and the numbers of each measure of a state, or of those of some names.

        Raises InputError: the weights do not fit, or torch cannot compute a measure.
        """
        problem = self.problem(weights)
        shared = dict[str, Any]()
        now = _parameters(problem)
        for name in self.measures if names is None else names:
            measure = self.measures[name]
            memory = self.memories[name]
            start = lambda: _parameters(self.first)  # noqa: E731
            state = Checkpoint(
                problem, now, start, iteration, memory, shared, origin=lambda: self.first
            )
            try:
                numbers = np.asarray(measure.measure(state), np.float64)
            except (
                RuntimeError
            ) as error:  # an operation without a derivative, or that cannot be mapped over samples
                raise InputError(f"{name}: {_obstacle(error)}") from error
            if told := measure.doubt(numbers):
                warnings.warn(f"{name} at iteration {iteration}: {told}", stacklevel=5)
            yield name, numbers


@own_modes()
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

    At its weights, or at each of several checkpoints. A copy of the model computes, in its eval
    mode, in blocks of samples, outside of `torch.autocast`, `torch.no_grad` and
    `torch.inference_mode`; the model itself stays as it is. In eval mode dropout is off, so
    measures are those of the whole network, not of the loss with dropout that your loop descends; a
    model that draws random numbers in eval mode too is refused. No derivative is taken of weights
    without `requires_grad`; a warning names them.

    Args:
        model: a module with one tensor of outputs, samples along the first axis.
        x: inputs (n, ...): images, tokens, rows; a tuple of them for several arguments, a
            dictionary for arguments by name; or a `DataLoader` of pairs of inputs and labels,
            without `y`, whose data set is read sample by sample as often as inputs are needed: a
            block of them is in memory, and all labels.
        y: labels (n, ...): numbers of the shape of the outputs, ±1, or classes.
        loss: a kind of loss, its keys as a mapping; or a function of outputs and labels that gives
            a number for each sample, or their mean or sum, such as
            `torch.nn.functional.cross_entropy`; or a function `(model, batch)`, with these names,
            that gives the mean loss of a batch, which is `x` or what the `DataLoader` gives.
        measures: kinds, such as `"sharpness"` or `{"kind": "sharpness", "blocks": "layer"}`, or
            functions of a state. All measure every checkpoint, whatever their `at`.
        checkpoints: a state dict, a file that `torch.load(weights_only=True)` reads, or a list of
            them, in the order of training; with their iterations as `{100: state_dict}` or `[(100,
            state_dict)]`.
        step: the iteration of a single checkpoint, or of the model's own weights.
        progress: called with how many numbers are measured, of how many.
        given: further settings, as follows.
        start: the initial weights, as a checkpoint or a module, for distances and all that compares
            with them.
        parameters: patterns of names, such as `"layer4.*"`: of other weights no derivative is
            taken.
        x_test: held-out inputs, for `test_loss` and `test_accuracy`.
        y_test: held-out labels.
        seed: of random vectors, as in a run.
        device: where the copy computes, such as `cuda`; samplers and Lanczos vectors stay on the
            CPU, in `float64`.
        dtype: precision of the network, by default `float64` on the CPU and `float32` elsewhere,
            whatever the weights have. In `float32` eigenvectors are found to a residual of 1e-5.

    Returns:
        A row for each checkpoint: the file as `checkpoint`, `iteration` (as given; behind `step`,
        `iter` or `epoch` in the name of the file, or the only whole number in it; or the place in
        the list), and the measures, named as columns of runs: up to 16 numbers of a measure are
        columns `name.1`, `name.2`, ..., more are an array in the column `name`. `arrays` has the
        arrays of all by name.

    Raises:
        InputError: the model, data, loss, checkpoints and measures do not fit together; the message
            says why.
        ConfigError: there is no such loss or measure, or it has no such key.
    """
    listed = _listed(checkpoints, step)
    instrument = Instrument(model, x, y, loss=loss, measures=measures, **given)
    table = Measured()
    done = 0
    table.arrays = {name: [] for name in instrument.measures}
    for iteration, file, weights in listed:
        row: dict[str, Any] = (
            {"iteration": iteration}
            if file is None
            else {"checkpoint": file, "iteration": iteration}
        )
        for name, numbers in instrument.at(weights, iteration):
            table.arrays[name].append(numbers)
            if numbers.ndim and numbers.size <= FEW_NUMBERS:
                columns = columns_in(instrument.config, name, numbers.shape)
                for column, value in zip(columns, numbers.ravel().tolist(), strict=True):
                    row[column.name] = value
            else:
                row[name] = numbers if numbers.ndim else float(numbers)
            done += 1
            if progress is not None:
                progress(done, len(listed) * len(instrument.measures))
        table.append(row)
    return table


def _config(
    loss: Any,
    measures: Sequence[Any],
    network: Given,
    samples: kinds.Samples,
    *,
    seed: int,
    dtype: str,
) -> kinds.RunConfig:
    """Return a config with the loss and the measures, in which a linear model and data of the
    same sizes stand in.
    """
    outputs = network.outputs or 1
    sizes = {"n": samples.n, "inputs": samples.d, "outputs": outputs}
    stand_in: dict[str, Any] = {
        "name": "measure",
        "dataset": {"kind": "linear_map", "singular_values": [1.0], **sizes},
        "architecture": {"kind": "fully_connected", "widths": [], "outputs": outputs},
        "loss": {"kind": "mse"},
        "initialization": {"kind": "default_scaled"},
        "optimizer": {"kind": "gd", "lr": 1.0, "iterations": 1},
    }

    def plain(asked: Any) -> Any:
        kind = measure_of(asked) if callable(asked) else asked
        return kind.model_dump(exclude_none=True) if isinstance(kind, kinds.Kind) else kind

    stand_in["record"] = {"measures": [plain(asked) for asked in measures]}
    if isinstance(loss, str | Mapping | Loss):
        stand_in["loss"] = {"kind": loss} if isinstance(loss, str) else plain(loss)
    try:
        config = load_config(stand_in, seed=seed, dtype=dtype)
    except ConfigError as error:
        if outputs == 1 and any(
            "architecture.outputs" in str(problem) for problem in error.problems
        ):
            needed = (
                "the model has a single output: give the loss that it is trained with, such as"
                ' loss="mse"'
            )
            raise InputError(f"{needed}, not cross_entropy") from error
        raise ConfigError(
            [replace(problem, file="measure") for problem in error.problems]
        ) from error
    if config.loss.labels != "real" and len(network._shape) > 1:
        raise InputError(
            f"outputs {network._shape} of a sample: the {config.loss.kind} loss needs a row of them"
        )
    return config


def _told(error: BaseException) -> str:
    """Return an error in one line; of a long one, whose cause may stand last, both ends."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    if len(text) <= 2 * _LONGEST:
        return text
    return f"{text[:_LONGEST].rstrip()} ... {text[-_LONGEST:].lstrip()}"


def _obstacle(error: RuntimeError) -> str:
    """Return why torch cannot compute a measure, and what to write where a loss takes gradients
    by inputs itself.
    """
    if "requires_grad_()" in str(error):
        instead = "write derivatives by inputs with torch.func.grad, jvp or jacrev in its place"
        return (
            "the model or the loss calls requires_grad_(), which torch cannot map over samples:"
            f" {instead}"
        )
    return f"torch cannot give it for this network: {_told(error)}"


# -- checkpoints


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint(State):
    """A state whose network has buffers of its own, such as running means, as the initial
    state's has.
    """

    origin: Callable[[], Problem] = field(kw_only=True)

    @property
    def first(self) -> State:
        """The initial state; it shares nothing with this state."""
        return State(self.origin(), self.start, self._start, 0)


def _listed(checkpoints: Any, step: int | None) -> list[tuple[int, str | None, Any]]:
    """Return iteration, file and weights of the checkpoints; None stands for the weights of the
    model.
    """
    if (
        isinstance(checkpoints, Mapping)
        and checkpoints
        and all(isinstance(key, int) for key in checkpoints)
    ):
        checkpoints = list(checkpoints.items())
    elif checkpoints is None or isinstance(checkpoints, nn.Module | Mapping | str | os.PathLike):
        checkpoints = [(step, checkpoints)]
    elif not checkpoints or step is not None:
        raise InputError(
            "step is of a single checkpoint: give a list [(step, checkpoint), ...] that is not"
            " empty"
        )
    given = [
        pair if isinstance(pair, tuple) and len(pair) == 2 else (None, pair) for pair in checkpoints
    ]
    files = [
        os.fspath(weights) if isinstance(weights, str | os.PathLike) else None
        for _, weights in given
    ]
    places: Sequence[int] = range(len(files))
    named = [file for file, (at, _) in zip(files, given, strict=True) if at is None]
    if named and None not in named:
        steps = iter(steps_of([Path(file).stem for file in named if file]) or ())
        places = [next(steps, place) if at is None else at for place, (at, _) in enumerate(given)]
    return [
        (place if at is None else at, file, weights)
        for place, (at, weights), file in zip(places, given, files, strict=True)
    ]


_UNITS = {
    "step": r"(?:global[_-]?)?steps?|iter(?:ation)?s?|it",
    "epoch": r"epochs?|ep",
}
"""What counts states in names of checkpoints, such as `epoch=3-step=400`: the finest first."""
_WHOLE = r"(\d+)(?![\d.]*\d|e[+-]?\d)"
"""A whole number, no beginning of a decimal number."""
_SAY = "give the steps: checkpoints=[(100, FILE), ...], or step=100 of a single one"


def steps_of(names: Sequence[str]) -> list[int] | None:
    """Return the steps that names of checkpoints give, without suffixes of files; None where they
    have no numbers.

    They are the numbers behind `step` or `iter`, else behind `epoch`; else each name has a single
    whole number. Decimal numbers, which are losses, and a version `-v1` at the end are none.

    Raises:
        InputError: a name has several such numbers, only some have one, or they do not increase.
    """
    names = [re.sub(r"[-_.]v\d+$", "", name) for name in names]
    of_units = [rf"(?i)(?<![a-z])(?:{unit})[=_-]?{_WHOLE}" for unit in _UNITS.values()]
    for pattern in (*of_units, rf"(?<!\d)(?<!\d\.)(?<!\de){_WHOLE}"):
        found = [list(dict.fromkeys(map(int, re.findall(pattern, name)))) for name in names]
        if any(found):
            break
    else:
        return None
    for name, numbers in zip(names, found, strict=True):
        if len(numbers) > 1:
            several = ", ".join(map(str, numbers))
            raise InputError(f"checkpoint {name}: which of {several} is its step? {_SAY}")
        if not numbers:
            raise InputError(f"checkpoint {name}: its name gives no step, others do; {_SAY}")
    steps = [number for (number,) in found]
    if any(a >= b for a, b in pairwise(steps)):
        listed = shorten(", ".join(map(str, steps)), _LONGEST)
        raise InputError(
            f"the names of the checkpoints give steps that do not increase: {listed}; "
            f"list the files in the order of training, or {_SAY}"
        )
    return steps


def tensors_of(given: Any) -> dict[str, Tensor]:
    """Return the tensors of a module, a state dict, or a file of a state dict, by name."""
    if isinstance(given, str | os.PathLike):
        if Path(given).exists() and not Path(given).is_file():  # a pipe would be waited for
            raise InputError(f"{os.fspath(given)}: it is not a regular file")
        try:
            given = torch.load(given, map_location="cpu", weights_only=True)
        except OSError as error:
            raise InputError(
                f"{os.fspath(given)}: it cannot be read ({error.strerror or error})"
            ) from error
        except (
            Exception
        ) as error:  # of damaged files, and of others than tensors, torch raises anything
            made = (
                "a file of `torch.save(model.state_dict(), FILE)` is needed; others are not"
                " unpickled"
            )
            raise InputError(f"{os.fspath(given)}: {made}") from error
    state = given.state_dict() if isinstance(given, nn.Module) else given
    if isinstance(state, Mapping):
        state = next((state[key] for key in NESTED if isinstance(state.get(key), Mapping)), state)
        if all(isinstance(k, str) and isinstance(v, Tensor | np.ndarray) for k, v in state.items()):
            state = {
                k: v if isinstance(v, Tensor) else torch.from_numpy(np.array(v))
                for k, v in state.items()
            }
            return {
                k.replace("_orig_mod.", ""): v for k, v in state.items()
            }  # which `torch.compile` adds
    raise InputError("a checkpoint is no state dict: names with tensors")


# -- the network


def _copied(model: Any, device: str, dtype: torch.dtype) -> nn.Module:
    """Return a copy of the model on a device, in its eval mode."""
    if not isinstance(model, nn.Module):
        given = (
            f"the class {model.__name__}"
            if isinstance(model, type)
            else f"a {type(model).__name__}"
        )
        raise InputError(f"the model is {given}, needed is a torch.nn.Module")
    tensors = (*model.parameters(), *model.buffers())
    if any(map(is_lazy, tensors)):
        raise InputError(
            "the model has lazy modules, whose weights have no shape yet: call it once with inputs"
        )
    if any(tensor.is_meta for tensor in tensors):
        raise InputError("the model has weights without values (device meta): load them first")
    try:
        copied = _copy(opened(model))
        for inner in list(copied.modules()):
            for name, child in inner.named_children():
                setattr(inner, name, opened(child))
            hooks = (
                inner._forward_pre_hooks,
                inner._forward_hooks,
                inner._backward_pre_hooks,
                inner._backward_hooks,
            )
            for (
                named
            ) in hooks:  # the user's would log what is measured, torch's own may compute weights
                for key in [
                    k for k, hook in named.items() if not f"{hook.__module__}.".startswith("torch.")
                ]:
                    del named[key]
        return copied.to(device, dtype).eval()
    except Exception as error:
        raise InputError(f"the model cannot be copied to {device}: {_told(error)}") from error


def _copy(module: nn.Module) -> nn.Module:
    """Return a copy; weights that hooks compute, as those of `weight_norm`, are copied by value,
    which torch refuses.
    """
    memo: dict[int, Any] = {
        id(tensor): tensor.detach().clone()
        for inner in module.modules()
        for tensor in vars(inner).values()
        if isinstance(tensor, Tensor) and not tensor.is_leaf
    }
    return copy.deepcopy(module, memo)


def _fitting(tensors: dict[str, Tensor], names: Collection[str]) -> dict[str, Tensor]:
    """Return the tensors without the prefixes of wrappers, where none has the name of a weight or
    buffer as it is.

    `module.` stands before names of parallel and averaged models, `model.` before those of
    Lightning; what else such a checkpoint holds is left out.
    """
    while not set(names) & set(tensors):
        prefix = next((p for p in PREFIXES if any(k.startswith(p) for k in tensors)), None)
        if prefix is None:
            break
        tensors = {
            k.removeprefix(prefix): tensor for k, tensor in tensors.items() if k.startswith(prefix)
        }
    return tensors


def opened(model: nn.Module) -> nn.Module:
    """Return the module within wrappers of `torch.compile`, of parallel training and of averaged
    weights.
    """
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(
            model, nn.DataParallel | nn.parallel.DistributedDataParallel | AveragedModel
        ):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def _chosen(module: nn.Module, patterns: str | Sequence[str] | None) -> nn.Module:
    """Freeze the weights whose names match no pattern, and warn of those that are frozen already.

    Raises InputError: all would be frozen.
    """
    wanted = (
        ["*"] if patterns is None else [patterns] if isinstance(patterns, str) else list(patterns)
    )
    weights = dict(module.named_parameters())
    frozen = ", ".join(name for name, weight in weights.items() if not weight.requires_grad)
    for name, weight in weights.items():
        weight.requires_grad_(
            weight.requires_grad and any(fnmatchcase(name, pattern) for pattern in wanted)
        )
    if not any(weight.requires_grad for weight in weights.values()):
        told = "the model has no weights that are trained (requires_grad)"
        names = shorten(", ".join(weights), _LONGEST)
        raise InputError(
            told if patterns is None else f"parameters {wanted} match no trained weight of: {names}"
        )
    if frozen and patterns is None:
        warnings.warn(
            f"weights without requires_grad are left out: {shorten(frozen, _LONGEST)}", stacklevel=5
        )
    return module


def _parameters(problem: Problem) -> Parameters:
    network = problem.config.architecture
    assert isinstance(network, Given)
    return kinds.read_only(network.weights(), problem.shapes)


def _passed(
    module: nn.Module, forward: Callable[..., Any], batch: Any, loss: BatchLoss | None = None
) -> Any:
    """Return the outputs for a batch, in the module's precision; of a `loss` its value, once for
    each sample.
    """
    weight = next(module.parameters())

    def like_weights(t: Tensor) -> Tensor:
        return t.to(weight.device, weight.dtype if t.is_floating_point() else t.dtype)

    batch = tree_map_only(Tensor, like_weights, batch)
    if loss is not None:
        # the loss calls the module
        rows = module.forward
        module.forward = forward
        try:
            return loss(module, batch).expand(len(tree_leaves(batch)[0]))
        finally:
            module.forward = rows
    if isinstance(batch, dict):
        return forward(**batch)
    return forward(*batch) if isinstance(batch, tuple | list) else forward(batch)


@contextmanager
def _differentiable() -> Iterator[None]:
    """Let attention be computed by operations that can be differentiated twice."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


class Numbered:
    """Inputs of samples, looked up by their numbers."""

    def __init__(self, look_up: LookUp, rows: kinds.Floats) -> None:
        self._look_up, self._numbers = look_up, rows[:, 0].astype(np.int64)

    def __getitem__(self, index: Any) -> Any:
        numbers = self._numbers[index]
        inputs = self._look_up(numbers.ravel())
        return tree_map_only(Tensor, lambda t: t.reshape(*numbers.shape, *t.shape[1:]), inputs)


class Given(kinds.Architecture):
    """A module of torch; its inputs are looked up by numbers of samples, its outputs of any
    shape are rows outside.
    """

    outputs: int | None = None
    """Numbers that it gives for a sample; None for a single number."""
    _module: Any = PrivateAttr()
    _look_up: Any = PrivateAttr()
    _shape: tuple[int, ...] = PrivateAttr(())
    _kept: int = PrivateAttr(0)
    _loss: Any = PrivateAttr(None)
    sample: tuple[tuple[int, ...], ...] = ()
    """The shape of a sample of each input."""

    @classmethod
    def of(cls, module: nn.Module, look_up: LookUp, count: int, loss: BatchLoss | None) -> Given:
        """Return the architecture of a module, or of its `loss`, tried with the first `count`
        samples.

        Raises:
            InputError: it does not take them, gives no tensor of a row for each sample, or draws
                random numbers.
        """
        weights = dict(module.named_parameters())
        trained = [name for name, weight in weights.items() if weight.requires_grad]
        kept = {weight.data_ptr(): 0 for weight in weights.values()}

        def keep(tensor: Tensor) -> Tensor:
            kept.setdefault(tensor.data_ptr(), tensor.numel())
            return tensor

        call = module if loss is None else module.forward  # hooks may compute weights
        batch = look_up(np.arange(count))
        shapes = tuple(tuple(t.shape[1:]) for t in tree_leaves(batch) if isinstance(t, Tensor))
        try:
            with torch.set_grad_enabled(loss is not None):  # where attention may take another way
                fast = _passed(module, call, batch, loss)
            with _differentiable():
                before = torch.get_rng_state()
                with saved_tensors_hooks(keep, lambda tensor: tensor):
                    h = _passed(module, call, batch, loss)
                draws = not torch.equal(before, torch.get_rng_state())
        except Exception as error:
            asked = ", ".join(str((count, *shape)) for shape in shapes)
            what = "the model does not take" if loss is None else "the loss cannot be computed of"
            raise InputError(f"{what} inputs {asked}: {_told(error)}") from error
        if not isinstance(h, Tensor) or h.shape[:1] != (count,):
            gives = tuple(h.shape) if isinstance(h, Tensor) else type(h).__name__
            raise InputError(
                f"the model gives {gives} for {count} samples, needed is a tensor with a row for"
                " each"
            )
        if draws:
            told = "so that each measure would see another network: take random layers out of it"
            raise InputError(f"the model draws random numbers in its eval mode, {told}")
        if fast.shape != h.shape or not torch.allclose(
            fast.detach(), h.detach(), rtol=_ROUNDING, atol=_ROUNDING
        ):
            raise InputError(
                "without gradients the model gives other outputs: switch the fast path of"
                " attention off"
            )
        size = h[0].numel()
        network = cls(
            outputs=size if size > 1 else None,
            sample=shapes,
            train=trained if len(trained) < len(weights) else None,
        )
        network._module, network._look_up, network._shape, network._loss = (
            module,
            look_up,
            tuple(h.shape[1:]),
            loss,
        )
        network._kept = max(size, sum(kept.values()) // count)
        return network

    @property
    def device(self) -> str:
        """That of the module."""
        return next(self._module.parameters()).device.type  # type: ignore[no-any-return]

    def refuse_mixing(self, count: int, first: int, at_once: int) -> None:
        """Compare parts of samples from all over the data with halves of them, drawn at random.

        Args:
            count: number of samples, 0 for none.
            first: number of the first.
            at_once: how many the network takes at once.

        Raises:
            InputError: the outputs of a sample depend on the samples beside it, or the loss is no
                mean over samples.
        """
        if count < 2:
            return
        spread = first + np.unique(
            np.linspace(0, count - 1, min(count, _COMPARED)).astype(np.int64)
        )
        parts = -(-len(spread) // max(2, min(at_once, _TOGETHER)))
        rng = np.random.default_rng(0)
        single = next(self._module.parameters()).dtype != torch.float64
        rounding = _ROUNDING if single else _CLOSE

        call = self._module if self._loss is None else self._module.forward

        def outputs(numbers: NDArray[np.int64]) -> Tensor:
            batch = self._look_up(numbers)
            with _differentiable(), torch.set_grad_enabled(self._loss is not None):
                return _passed(self._module, call, batch, self._loss).detach()  # type: ignore[no-any-return]

        for part in range(parts):
            numbers = rng.permutation(spread[part::parts])
            halves = [half for half in np.array_split(numbers, 2) if len(half)]
            together = outputs(numbers)
            apart = [outputs(half) for half in halves]
            if self._loss is not None:
                together = together.mean()
                cut = torch.cat(apart).mean()
                if not torch.allclose(cut, together, rtol=rounding, atol=rounding):
                    told = (
                        f"{len(numbers)} samples together give {together:.6g}, in two parts"
                        f" {cut:.6g}"
                    )
                    needed = "give the mean over samples of the mean over each sample's tokens"
                    raise InputError(f"the loss is no mean over samples: {told}; {needed}")
                continue
            same = all(h.shape[1:] == together.shape[1:] for h in apart)
            if not same or not torch.allclose(
                torch.cat(apart), together, rtol=rounding, atol=rounding
            ):
                told = "its outputs for a sample change with the samples beside it"
                raise InputError(f"the model mixes samples: {told}")

    def inputs_of(self, x: kinds.Floats) -> Numbered:
        """Return the inputs of samples whose numbers are `x` (n, 1)."""
        return Numbered(self._look_up, x)

    def state_dict(self) -> dict[str, Tensor]:
        """Return weights and buffers by name."""
        return dict(self._module.state_dict())

    def weights(self) -> dict[str, kinds.Floats]:
        """Return the weights of the module by name."""
        return {
            name: weight.detach().cpu().numpy() for name, weight in self._module.named_parameters()
        }

    def at(self, weights: Any) -> Given:
        """Return the network with other weights and buffers.

        Raises:
            InputError: they do not fit this network.
        """
        network = self.model_copy()
        network._module = _copy(self._module)
        tensors = _fitting(tensors_of(weights), network._module.state_dict())
        try:
            network._module.load_state_dict(tensors)
        except RuntimeError as error:
            named = os.fspath(weights) if isinstance(weights, str | os.PathLike) else "checkpoint"
            raise InputError(f"{named}: it does not fit the model: {_told(error)}") from error
        return network

    def build(self, d: int) -> nn.Module:
        """Return a copy of the module that takes inputs as they are looked up; its outputs are
        (n,) or (n, C).
        """
        module = _copy(self._module)
        forward = module.forward

        def rows(batch: Any) -> Tensor:
            with _differentiable():
                h: Tensor = _passed(module, forward, batch, self._loss)
            return h.reshape(len(h)) if self.outputs is None else h.reshape(len(h), self.outputs)

        module.forward = rows
        return module

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every parameter."""
        return {name: weight.shape for name, weight in self._module.named_parameters()}

    def network(
        self, d: int, initial: Parameters, dtype: torch.dtype, device: str = "cpu"
    ) -> nn.Module:
        """Return the network with some weights, in its own precision and on its own device."""
        weight = next(self._module.parameters())
        return super().network(d, initial, weight.dtype, str(weight.device))

    def evaluation(self, parameters: Parameters, d: int) -> Callable[[kinds.Floats], kinds.Floats]:
        """Return numbers of samples (n, 1) -> outputs (n,) or (n, C), in float64."""
        model = self.network(d, parameters, torch.float64)
        gradients = self._loss is not None  # which may take gradients by inputs itself

        def h(x: kinds.Floats) -> kinds.Floats:
            with torch.set_grad_enabled(gradients):
                outputs = model(self.inputs_of(x)[:])
            return np.asarray(outputs.detach().double().cpu().numpy())

        return h

    def layer_sizes(self, shapes: kinds.Shapes, d: int) -> list[int]:
        """Return how many numbers are kept of an input for the way back."""
        return [self._kept]


# -- data and loss


def _data(x: Any, y: Any, of_batches: bool) -> tuple[LookUp, Tensor]:
    """Return how inputs are looked up, and all labels (n, ...); for a loss of batches these are 0.

    A `DataLoader` gives both: its data set is read sample by sample as often as inputs are needed,
    in the order of the numbers, so that its batches are never held together.
    """
    try:
        if isinstance(x, DataLoader):
            return _loaded(x, of_batches)
        x = tree_map(
            lambda values: torch.as_tensor(values).detach(),
            dict(x) if isinstance(x, Mapping) else x,
        )
        sizes = {len(t) for t in tree_leaves(x)}
        labels = torch.zeros(max(sizes)) if of_batches else torch.as_tensor(y).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        needed = "tensors or arrays, or a DataLoader of pairs (inputs, labels) in place of both"
        raise InputError(f"inputs and labels must be {needed}: {_told(error)}") from error
    if sizes != {len(labels)} or not all(t.numel() for t in tree_leaves(x)):
        shapes = ", ".join(str(tuple(t.shape)) for t in tree_leaves(x))
        raise InputError(
            f"inputs {shapes} and labels {tuple(labels.shape)} differ in length, or are empty"
        )
    return lambda numbers: tree_map(lambda t: t[torch.from_numpy(numbers)], x), labels


def _loaded(loader: DataLoader[Any], of_batches: bool) -> tuple[LookUp, Tensor]:
    if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
        raise InputError(
            "the DataLoader needs a data set whose samples have numbers, and a batch size"
        )
    places = sorted(
        place for batch in loader.batch_sampler for place in batch
    )  # a sampler may leave some out

    def batch(numbers: NDArray[np.int64]) -> Any:
        given = loader.collate_fn([loader.dataset[places[k]] for k in numbers])
        return dict(given) if isinstance(given, Mapping) else given

    if of_batches:
        return batch, torch.zeros(len(places))
    size = loader.batch_size or 1
    blocks = [
        np.arange(first, min(first + size, len(places))) for first in range(0, len(places), size)
    ]
    labels = [torch.as_tensor(y) for _, y in map(batch, blocks)]
    return lambda numbers: batch(numbers)[0], torch.cat(labels)


def _rows(labels: Tensor) -> kinds.Floats:
    rows = labels.double().reshape(len(labels), -1).numpy()
    return rows[:, 0] if rows.shape[1] == 1 else rows


class OwnLoss(Loss):
    """A function of outputs and labels, of the shapes that the network and the data give them."""

    _each: Any = PrivateAttr()
    _whole: Any = PrivateAttr()
    _shaped: Any = PrivateAttr()

    def values(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the loss of each sample (n,)."""
        if isinstance(h, formulas.Expression):
            raise formulas.NotAFormulaError("a function of outputs and labels is no formula")
        return self._each(*self._shaped(h, y))

    def whole(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the loss of some samples as the function gives it, which may weight them."""
        loss = self._whole(*self._shaped(h, y))
        return loss.mean() if loss.ndim else loss


class OwnClasses(OwnLoss):
    """A function of outputs (n, C) and classes (n,)."""

    labels = "classes"
    many_outputs = True

    def predictions(self, h: kinds.Array) -> kinds.Array:
        """Return the number of the largest output."""
        return h.argmax(-1)


def _anywhere(function: Any, **settings: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the function; weights of a module follow the device and the precision of the
    outputs.
    """
    if not isinstance(function, nn.Module):
        return function  # type: ignore[no-any-return]

    @cache
    def like(device: torch.device, dtype: torch.dtype) -> Any:
        copied = copy.deepcopy(function).to(device, dtype)
        vars(copied).update(settings)
        return copied

    return lambda h, y: like(h.device, h.dtype)(h, y)


def _own_loss(function: Callable[..., Tensor], network: Given, labels: Tensor) -> OwnLoss:
    """Return the loss of a function that gives a number for each sample, or their mean or sum.

    Raises:
        InputError: it gives something else.
    """
    integers = not labels.is_floating_point()

    def shaped(h: Any, y: Any) -> tuple[Tensor, Tensor]:
        h = torch.as_tensor(h)
        y = torch.as_tensor(y)
        y = y.reshape(len(y), *labels.shape[1:]).to(h.device, torch.long if integers else h.dtype)
        return h.reshape(len(h), *network._shape), y

    numbers = np.arange(len(labels), dtype=float)[:, None]
    h, y = shaped(network.function(network.weights())(numbers), labels)
    reduction = getattr(function, "reduction", None)
    asked = function
    function = _anywhere(function)

    def singly(h: Tensor, y: Tensor) -> Tensor:
        return torch.func.vmap(lambda h, y: function(h[None], y[None]).reshape(()))(h, y)

    try:
        whole = function(h, y)
        each = function if whole.ndim else singly
        if not whole.ndim and reduction in ("mean", "sum"):
            apart = _anywhere(asked, reduction="none")
            each = apart if apart(h, y).shape == y.shape[:1] else singly
        values = each(h, y)
        reductions: dict[Reduction, Tensor] = {"mean": values.mean(), "sum": values.sum()}
        fits = [
            name
            for name, value in reductions.items()
            if whole.ndim or torch.allclose(whole, value, rtol=_ROUNDING)
        ]
        if not fits and each is not singly and reduction == "mean":
            # weights of classes, or classes left out
            share = float(whole / apart(h, y).mean())

            def weighted(h: Tensor, y: Tensor) -> Tensor:
                return share * apart(h, y)

            each = weighted
            fits = ["mean"]
            values = each(h, y)
    except Exception as error:
        raise InputError(
            f"the loss of outputs {tuple(h.shape)} and labels {tuple(y.shape)}: {_told(error)}"
        ) from error
    if values.shape != y.shape[:1] or not fits:
        needed = "a number for each sample, nor their mean or sum"
        raise InputError(
            f"the loss gives numbers {tuple(whole.shape)} for {len(y)} samples, neither {needed}"
        )
    classes = integers and y.ndim == 1 and len(network._shape) == 1 and network.outputs is not None
    classes = classes and bool(y.min() >= 0) and bool(y.max() < network._shape[0])
    loss = (OwnClasses if classes else OwnLoss)(reduction=fits[0])
    loss._each = each
    loss._whole = function
    loss._shaped = shaped
    return loss
