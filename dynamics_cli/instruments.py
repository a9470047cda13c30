"""Measures of a network that somebody else made and trained: `dyn.measure`; `recorder` takes them in anybody's loop.

A module of torch becomes an `Architecture` (`Given`), data become `Samples`, a function of outputs and labels a `Loss`
(`OwnLoss`). Measures, derivatives and random streams work as in runs. Begin with `Instrument`.
"""

from __future__ import annotations

import copy
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import PrivateAttr
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parameter import is_lazy

from dynamics_cli import kinds
from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.errors import InputError, needing
from dynamics_cli.kinds import Loss, Measure, Parameters, Problem, State, formulas
from dynamics_cli.recording.measures import measure_of
from dynamics_cli.runs.columns import column_names
from dynamics_cli.runs.run import FEW_NUMBERS
from dynamics_cli.text import Table, jsonable, shorten
from dynamics_cli.training.measuring import chosen_measures
from dynamics_cli.training.problem import check_labels

if TYPE_CHECKING:
    import xarray

NESTED = ("state_dict", "model_state_dict", "model")
"""Keys under which checkpoints of training loops hold the state dict."""
_LONGEST = 200
"""Characters of an error of others that a message repeats."""
_ROUNDING = 1e-4
"""Relative difference of numbers that are equal but for rounding, of float32 too."""
Reduction = Literal["mean", "sum"]


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
        variables = {
            name: (("iteration", *(f"{name}_{k}" for k in range(found[0].ndim))), np.stack(found))
            for name, found in self.arrays.items()
        }
        files = {"checkpoint": ("iteration", self.column("checkpoint"))} if "checkpoint" in self.columns else {}
        return xarray.Dataset(variables, coords={"iteration": self.column("iteration"), **files})


@contextmanager
def own_modes() -> Iterator[None]:
    """Compute in the modes of runs whatever the caller's are; turn the `sys.exit()` of a model into an error."""
    plain = (torch.autocast(device, enabled=False) for device in ("cpu", "cuda"))
    try:
        with torch.inference_mode(False), torch.enable_grad(), next(plain), next(plain):
            yield
    except SystemExit as error:
        raise InputError(f"the model or the loss ended the process: {_told(error)}") from error


class Instrument:
    """Measures a network at any of its states; vectors that carry over from a state start the next measurement."""

    def __init__(
        self,
        model: Any,
        x: Any,
        y: Any,
        *,
        loss: str | Mapping[str, Any] | Loss | Callable[[Tensor, Tensor], Tensor],
        measures: Sequence[str | Mapping[str, Any] | Measure | Callable[[State], Any]],
        weights: Any = None,
        start: Any = None,
        parameters: str | Sequence[str] | None = None,
        x_test: Any = None,
        y_test: Any = None,
        seed: int = 0,
        dtype: Literal["float32", "float64"] = "float64",
    ) -> None:
        """Copy the model, and take data, loss and measures as `api.measure` does.

        `weights` are those of a function in place of a model, `start` the initial ones.

        Raises:
            InputError: model, data, loss and measures do not fit together.
            ConfigError: there is no such loss or measure, or it has no such key.
        """
        data, held_out = _data(x, y), None if x_test is None else _data(x_test, y_test)
        self.samples = kinds.make_samples(
            data.rows, data.labels, x_test=held_out and held_out.rows, y_test=held_out and held_out.labels,
            origin="measure",
        )  # fmt: skip
        module = _copied(model, weights, torch.float64 if dtype == "float64" else torch.float32)
        self.network = Given.of(_chosen(module, parameters), data)
        config = _config(loss, measures, self.network, self.samples, seed=seed, dtype=dtype)
        config = config.model_copy(update={"architecture": self.network})
        if isinstance(loss, str | Mapping | Loss):
            check_labels(self.samples, config.loss, config)
        else:
            config = config.model_copy(update={"loss": _own_loss(loss, self.network, data)})
        self.config, self.start = config, start
        self.measures = chosen_measures(self.problem(None))
        self.memories: dict[str, dict[str, Any]] = {name: {} for name in self.measures}

    def problem(self, weights: Any) -> Problem:
        """Return the problem of the network with some weights and buffers; None for those that it came with."""
        architecture = self.network if weights is None else self.network.at(weights)
        own = self.config.model_copy(update={"architecture": architecture})
        return Problem(own, self.samples, self.config.loss, architecture.shapes(self.samples.d))

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
        problem, shared = self.problem(weights), dict[str, Any]()
        now = _parameters(problem)
        for name in self.measures if names is None else names:
            one, memory = self.measures[name], self.memories[name]
            start = lambda: _parameters(self.first)  # noqa: E731
            state = Checkpoint(problem, now, start, iteration, memory, shared, origin=lambda: self.first)
            numbers = _numbers(one, state)
            if told := one.doubt(numbers):
                warnings.warn(f"{name} at iteration {iteration}: {told}", stacklevel=5)
            yield name, numbers


@own_modes()
def measure(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    checkpoints: Any = None,
    step: int | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    **given: Any,
) -> Measured:
    """See `api.measure`."""
    listed = _listed(checkpoints, step)
    instrument = Instrument(model, x, y, weights=listed[0][2], **given)
    table, done = Measured(), 0
    table.arrays = {name: [] for name in instrument.measures}
    for iteration, file, weights in listed:
        row: dict[str, Any] = {"iteration": iteration} if file is None else {"checkpoint": file, "iteration": iteration}
        for name, numbers in instrument.at(weights, iteration):
            table.arrays[name].append(numbers)
            row |= _columns(instrument.config, name, numbers)
            done += 1
            if progress is not None:
                progress(done, len(listed) * len(instrument.measures))
        table.append(row)
    return table


def _config(
    loss: Any, measures: Sequence[Any], network: Given, samples: kinds.Samples, *, seed: int, dtype: str
) -> kinds.RunConfig:
    """Return a config with the loss and the measures, in which a linear model and data of the same sizes stand in."""
    outputs = network.outputs or 1
    sizes = {"n": samples.n, "inputs": samples.d, "outputs": outputs}
    stand_in = {
        "name": "measure", "dataset": {"kind": "linear_map", "singular_values": [1.0], **sizes},
        "architecture": {"kind": "fully_connected", "widths": [], "outputs": outputs}, "loss": {"kind": "mse"},
        "initialization": {"kind": "default_scaled"}, "optimizer": {"kind": "gd", "lr": 1.0, "iterations": 1},
    }  # fmt: skip

    def text(asked: Any) -> str:
        if isinstance(asked, str):  # a word, or YAML
            return asked
        kind = measure_of(asked) if callable(asked) else asked
        return json.dumps(jsonable(kind if isinstance(kind, Mapping) else kind.model_dump(exclude_none=True)))

    texts = [f"record.measures=[{', '.join(map(text, measures))}]"]
    if isinstance(loss, str | Mapping | Loss):
        texts.append(f"loss{'' if text(loss).startswith('{') else '.kind'}={text(loss)}")
    try:
        config = load_config(stand_in, texts, seed=seed, dtype=dtype)
    except ConfigError as error:
        if outputs == 1 and any("architecture.outputs" in str(problem) for problem in error.problems):
            raise InputError(
                "the model has a single output, its loss cannot be cross_entropy: give the loss that it is trained "
                'with, such as loss="mse" (--loss mse)'
            ) from error
        raise ConfigError([replace(one, file="measure") for one in error.problems]) from error
    if config.loss.labels != "real" and len(network._shape) > 1:
        raise InputError(f"outputs {network._shape} of a sample: the {config.loss.kind} loss needs a row of them")
    return config


def _columns(config: kinds.RunConfig, name: str, numbers: kinds.Floats) -> dict[str, Any]:
    if numbers.ndim == 0 or numbers.size > FEW_NUMBERS:
        return {name: numbers if numbers.ndim else float(numbers)}
    columns = column_names(config, name, numbers.size)
    return {f"{name}.{column}": value for column, value in zip(columns, numbers.ravel().tolist(), strict=True)}


def _numbers(one: Measure, state: State) -> kinds.Floats:
    try:
        return np.asarray(one.measure(state), np.float64)
    except RuntimeError as error:  # of torch: an operation without a derivative, or that cannot be mapped over samples
        raise InputError(f"{one.name}: torch cannot give it for this network: {_told(error)}") from error


def _told(error: BaseException) -> str:
    return shorten(" ".join(f"{type(error).__name__}: {error}".split()), _LONGEST)


# -- checkpoints


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint(State):
    """A state whose network has buffers of its own, such as running means, as the initial state's has."""

    origin: Callable[[], Problem] = field(kw_only=True)

    @property
    def first(self) -> State:
        """The initial state; it shares nothing with this state."""
        return State(self.origin(), self.start, self._start, 0)


def _listed(checkpoints: Any, step: int | None) -> list[tuple[int, str | None, Any]]:
    """Return iteration, file and weights of the checkpoints; None stands for the weights of the model."""
    if isinstance(checkpoints, Mapping) and checkpoints and all(isinstance(key, int) for key in checkpoints):
        checkpoints = list(checkpoints.items())
    if checkpoints is None or isinstance(checkpoints, nn.Module | Mapping | str | os.PathLike):
        checkpoints = [checkpoints]
    given = [one if isinstance(one, tuple) and len(one) == 2 else (None, one) for one in checkpoints]
    files = [os.fspath(one) if isinstance(one, str | os.PathLike) else None for _, one in given]
    if not files:
        raise InputError("checkpoints is an empty list")
    if step is not None:
        if len(files) > 1:
            raise InputError(f"step is of a single checkpoint, there are {len(files)}: give [(step, checkpoint), ...]")
        given = [(step, given[0][1])]
    numbers = [int(found[-1]) for file in files if file and (found := re.findall(r"\d+", Path(file).stem))]
    places = numbers if len(set(numbers)) == len(files) else range(len(files))
    return [
        (place if at is None else at, file, one) for place, (at, one), file in zip(places, given, files, strict=True)
    ]


def tensors_of(given: Any) -> dict[str, Tensor]:
    """Return the tensors of a module, a state dict, or a file of a state dict, by name."""
    if isinstance(given, str | os.PathLike):
        if Path(given).exists() and not Path(given).is_file():  # a pipe would be waited for
            raise InputError(f"{os.fspath(given)}: it is not a regular file")
        try:
            given = torch.load(given, map_location="cpu", weights_only=True)
        except OSError as error:
            raise InputError(f"{os.fspath(given)}: it cannot be read ({error.strerror or error})") from error
        except Exception as error:  # of damaged files, and of others than tensors, torch raises anything
            made = "a file of `torch.save(model.state_dict(), FILE)` is needed; others are not unpickled"
            raise InputError(f"{os.fspath(given)}: {made}") from error
    found = given.state_dict() if isinstance(given, nn.Module) else given
    if isinstance(found, Mapping):
        found = next((found[key] for key in NESTED if isinstance(found.get(key), Mapping)), found)
        if all(isinstance(k, str) and isinstance(v, Tensor | np.ndarray) for k, v in found.items()):
            found = {k: v if isinstance(v, Tensor) else torch.from_numpy(np.array(v)) for k, v in found.items()}
            return {k.replace("_orig_mod.", ""): v for k, v in found.items()}  # which `torch.compile` adds
    raise InputError("a checkpoint is no state dict: names with tensors")


class _Function(nn.Module):
    """A function of weights by name and inputs."""

    def __init__(self, function: Callable[[dict[str, Tensor], Tensor], Tensor], weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._function = function
        for name, tensor in weights.items():
            owner: nn.Module = self
            *path, own = name.split(".")
            for part in path:
                if part not in dict(owner.named_children()):
                    owner.add_module(part, nn.Module())
                owner = owner.get_submodule(part)
            owner.register_parameter(own, nn.Parameter(tensor.detach().clone()))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        return self._function(dict(self.named_parameters(remove_duplicate=False)), x)


def _copied(model: Any, weights: Any, dtype: torch.dtype) -> nn.Module:
    """Return a copy of the model for the CPU, in its eval mode."""
    if not isinstance(model, nn.Module) and (isinstance(model, type) or not callable(model) or weights is None):
        given = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        needed = "a torch.nn.Module, or a function of weights and inputs whose weights are checkpoints"
        raise InputError(f"the model is {given}, needed is {needed}")
    if isinstance(model, nn.Module):
        model = opened(model)
        tensors = (*model.parameters(), *model.buffers())
        if any(map(is_lazy, tensors)):
            raise InputError("the model has lazy modules, whose weights have no shape yet: call it once with inputs")
        if any(tensor.is_meta for tensor in tensors):
            raise InputError("the model has weights without values (device meta): load them first")
    try:
        model = copy.deepcopy(model) if isinstance(model, nn.Module) else _Function(model, tensors_of(weights))
        for inner in list(model.modules()):
            for name, child in inner.named_children():
                setattr(inner, name, opened(child))
            _drop_hooks(inner)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the model cannot be copied: {_told(error)}") from error
    copied: nn.Module = model.to("cpu", dtype).eval()
    return copied


def _drop_hooks(module: nn.Module) -> None:
    """Drop hooks of the user's, which would log what is measured; those of torch may compute weights."""
    for hooks in (module._forward_pre_hooks, module._forward_hooks, module._backward_pre_hooks, module._backward_hooks):
        for key in [key for key, hook in hooks.items() if not f"{hook.__module__}.".startswith("torch.")]:
            del hooks[key]


def opened(model: nn.Module) -> nn.Module:
    """Return the module within wrappers of `torch.compile` and of parallel training."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def _chosen(module: nn.Module, patterns: str | Sequence[str] | None) -> nn.Module:
    """Freeze the weights whose names match no pattern; InputError: all would be frozen."""
    wanted = ["*"] if patterns is None else [patterns] if isinstance(patterns, str) else list(patterns)
    for name, weight in module.named_parameters():
        weight.requires_grad_(weight.requires_grad and any(fnmatchcase(name, one) for one in wanted))
    if not any(weight.requires_grad for weight in module.parameters()):
        there = shorten(", ".join(name for name, _ in module.named_parameters()), _LONGEST)
        told = "the model has no weights that are trained (requires_grad)"
        raise InputError(told if patterns is None else f"parameters {wanted} match no trained weight of: {there}")
    return module


def _parameters(problem: Problem) -> Parameters:
    network = problem.config.architecture
    assert isinstance(network, Given)
    return kinds.read_only(network.weights(), problem.shapes)


# -- the network


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


class Given(kinds.Architecture):
    """A module of torch; its inputs and outputs of any shape are rows of numbers outside."""

    outputs: int | None = None
    """Numbers that it gives for a sample; None for a single number."""
    _module: Any = PrivateAttr()
    _data: Any = PrivateAttr()
    _shape: tuple[int, ...] = PrivateAttr(())
    _kept: int = PrivateAttr(0)

    @classmethod
    def of(cls, module: nn.Module, data: _Data) -> Given:
        """Return the architecture of a module for inputs such as the data.

        Raises:
            InputError: it does not take them, gives no tensor of a row for each sample, or mixes samples.
        """
        weights = dict(module.named_parameters())
        trained = [name for name, weight in weights.items() if weight.requires_grad]
        kept = {weight.data_ptr(): 0 for weight in weights.values()}

        def keep(tensor: Tensor) -> Tensor:
            kept.setdefault(tensor.data_ptr(), tensor.numel())
            return tensor

        probe, x = cls(), torch.from_numpy(data.rows[:2])
        probe._module, probe._data = module, data
        try:
            alone = [probe._run(module, module.forward, x[k : k + 1]) for k in range(len(x))]
            places, names = probe._inputs(module, x)
            with torch.no_grad():  # where attention may take another way
                fast = module(*places, **names)
            with saved_tensors_hooks(keep, lambda tensor: tensor):
                h = probe._run(module, module.forward, x)
        except Exception as error:
            raise InputError(f"the model does not take inputs {data.shapes}: {_told(error)}") from error
        if not isinstance(h, Tensor) or h.shape[:1] != x.shape[:1]:
            gives = tuple(h.shape) if isinstance(h, Tensor) else type(h).__name__
            raise InputError(f"the model gives {gives} for {len(x)} samples, needed is a tensor with a row for each")
        if not torch.allclose(torch.cat(alone), h, rtol=_ROUNDING, atol=_ROUNDING):
            raise InputError("the model mixes samples, or draws random numbers: its outputs change with the batch")
        if fast.shape != h.shape or not torch.allclose(fast, h.detach(), rtol=_ROUNDING, atol=_ROUNDING):
            raise InputError("without gradients the model gives other outputs: switch the fast path of attention off")
        count = h[0].numel()
        found = cls(outputs=count if count > 1 else None, train=trained if len(trained) < len(weights) else None)
        found._module, found._data, found._shape = module, data, tuple(h.shape[1:])
        found._kept = max(count, sum(kept.values()) // len(x))
        return found

    @property
    def inputs(self) -> list[list[int]]:
        """The shape of a sample of each input."""
        return [list(shape) for _, shape, _ in self._data.inputs]

    def state_dict(self) -> dict[str, Tensor]:
        """Return weights and buffers by name."""
        found: dict[str, Tensor] = self._module.state_dict()
        return found

    def weights(self) -> dict[str, kinds.Floats]:
        """Return the weights of the module by name."""
        return {name: weight.detach().numpy() for name, weight in self._module.named_parameters()}

    def at(self, weights: Any) -> Given:
        """Return the network with other weights and buffers.

        Raises:
            InputError: they do not fit this network.
        """
        found = self.model_copy()
        found._module = copy.deepcopy(self._module)
        tensors, names = tensors_of(weights), found._module.state_dict()
        if all(k.startswith("module.") for k in tensors) and not any(k.startswith("module.") for k in names):
            tensors = {k.removeprefix("module."): v for k, v in tensors.items()}  # which parallel wrappers add
        try:
            found._module.load_state_dict(tensors)
        except RuntimeError as error:
            named = os.fspath(weights) if isinstance(weights, str | os.PathLike) else "checkpoint"
            raise InputError(f"{named}: it does not fit the model: {_told(error)}") from error
        return found

    def _inputs(self, module: nn.Module, x: Tensor) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Return rows of numbers as the arguments of the module, by place and by name."""
        own, at = next(module.parameters()).dtype, 0
        places, names = list[Tensor](), dict[str, Tensor]()
        for name, shape, dtype in self._data.inputs:
            size = math.prod(shape)
            part = x[:, at : at + size].reshape(len(x), *shape).to(dtype or own)
            at += size
            if name is None:
                places.append(part)
            else:
                names[name] = part
        return places, names

    def _run(self, module: nn.Module, forward: Callable[..., Tensor], x: Tensor) -> Tensor:
        places, names = self._inputs(module, x)
        with _differentiable():
            return forward(*places, **names)

    def build(self, d: int) -> nn.Module:
        """Return a copy of the module whose inputs are (n, d), and whose outputs are (n,) or (n, C)."""
        module: nn.Module = copy.deepcopy(self._module)
        forward = module.forward

        def rows(x: Tensor) -> Tensor:
            h = self._run(module, forward, x)
            return h.reshape(len(x)) if self.outputs is None else h.reshape(len(x), self.outputs)

        module.forward = rows
        return module

    def shapes(self, d: int) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every parameter."""
        return {name: weight.shape for name, weight in self.weights().items()}

    def network(self, d: int, initial: Parameters, dtype: torch.dtype, device: str = "cpu") -> nn.Module:
        """Return the network with some weights, in its own precision."""
        return super().network(d, initial, next(self._module.parameters()).dtype, device)

    def loaded(self, parameters: Parameters, d: int, *, strict: bool = True) -> tuple[Any, Any]:
        """Return the network with some weights, and its dtype."""
        dtype = next(self._module.parameters()).dtype
        return self.network(d, parameters, dtype), dtype

    def layer_sizes(self, shapes: kinds.Shapes, d: int) -> list[int]:
        """Return how many numbers are kept of an input for the way back."""
        return [self._kept]


# -- data and loss


class _Data(NamedTuple):
    rows: kinds.Floats
    labels: kinds.Floats
    inputs: list[tuple[str | None, tuple[int, ...], torch.dtype | None]]
    """Name, shape of a sample, and dtype of each input; None for inputs by place, and for the dtype of the weights."""
    label_shape: tuple[int, ...]
    classes: bool
    """Whether labels are integers."""

    @property
    def shapes(self) -> str:
        """The shapes of the inputs of a sample, for messages."""
        return ", ".join(str((1, *shape)) for _, shape, _ in self.inputs)

    def as_labels(self, rows: Tensor, h: Tensor) -> Tensor:
        """Return rows of labels in their own shape, as integers or in the precision of the outputs."""
        return rows.reshape(len(rows), *self.label_shape).to(torch.long if self.classes else h.dtype)


def _named(x: Any) -> list[tuple[str | None, Tensor]]:
    """Return name and tensor of each input: of a mapping, of a tuple, or of a single one."""
    several = x.items() if isinstance(x, Mapping) else [(None, one) for one in (x if isinstance(x, tuple) else [x])]
    return [(name, torch.as_tensor(one).detach().cpu()) for name, one in several]


def _data(x: Any, y: Any) -> _Data:
    """Return inputs and labels as rows of numbers; a `DataLoader` in place of the inputs gives both."""
    try:
        batches = [(x, y)] if y is not None else [(one, other) for one, other in x]
        parts = [_named(one) for one, _ in batches]
        inputs = [(own[0][0], torch.cat([one for _, one in own])) for own in zip(*parts, strict=True)]
        y = torch.cat([torch.as_tensor(other).detach().cpu() for _, other in batches])
    except (TypeError, ValueError, RuntimeError) as error:
        needed = "tensors or arrays, or a DataLoader of pairs (inputs, labels) in place of both"
        raise InputError(f"inputs and labels must be {needed}: {_told(error)}") from error
    if {len(one) for _, one in inputs} != {len(y)} or not all(one.numel() for _, one in inputs):
        shapes = ", ".join(str(tuple(one.shape)) for _, one in inputs)
        raise InputError(f"inputs {shapes} and labels {tuple(y.shape)} differ in length, or are empty")
    rows = np.concatenate([one.double().reshape(len(one), -1).numpy() for _, one in inputs], axis=1)
    labels = y.double().reshape(len(y), -1).numpy()
    labels = labels[:, 0] if labels.shape[1] == 1 else labels
    kept = [(name, tuple(one.shape[1:]), None if one.is_floating_point() else one.dtype) for name, one in inputs]
    return _Data(rows, labels, kept, tuple(y.shape[1:]), not y.is_floating_point())


class OwnLoss(Loss):
    """A function of outputs and labels, of the shapes that the network and the data give them."""

    _each: Any = PrivateAttr()
    _whole: Any = PrivateAttr()
    _shape: tuple[int, ...] = PrivateAttr()
    _data: Any = PrivateAttr()

    def values(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the loss of each sample (n,)."""
        if isinstance(h, formulas.Expression):
            raise formulas.NotAFormulaError("a function of outputs and labels is no formula")
        return self._each(*self._shaped(h, y))

    def _shaped(self, h: Any, y: Any) -> tuple[Tensor, Tensor]:
        h, y = torch.as_tensor(h), torch.as_tensor(y)
        return h.reshape(len(h), *self._shape), self._data.as_labels(y, h)

    def whole(self, h: kinds.Array, y: kinds.Array) -> kinds.Array:
        """Return the loss of some samples as the function gives it, which may weight them."""
        found = self._whole(*self._shaped(h, y))
        return found.mean() if found.ndim else found


class OwnClasses(OwnLoss):
    """A function of outputs (n, C) and classes (n,)."""

    labels = "classes"
    many_outputs = True

    def predictions(self, h: kinds.Array) -> kinds.Array:
        """Return the number of the largest output."""
        return h.argmax(-1)


def _own_loss(function: Callable[[Tensor, Tensor], Tensor], network: Given, data: _Data) -> OwnLoss:
    """Return the loss of a function that gives a number for each sample, or their mean or sum.

    Raises:
        InputError: it gives something else.
    """
    h = torch.from_numpy(network.function(network.weights())(data.rows)).reshape(len(data.rows), *network._shape)
    y = data.as_labels(torch.from_numpy(data.labels), h)
    if isinstance(function, nn.Module):  # weights of classes are in single precision
        function = copy.deepcopy(function).to("cpu", h.dtype)

    def singly(h: Tensor, y: Tensor) -> Tensor:
        return torch.func.vmap(lambda h, y: function(h[None], y[None]).reshape(()))(h, y)

    try:
        whole = function(h, y)
        each = function if whole.ndim else singly
        values = each(h, y)
        reductions: dict[Reduction, Tensor] = {"mean": values.mean(), "sum": values.sum()}
        fits = [name for name, one in reductions.items() if whole.ndim or torch.allclose(whole, one, rtol=_ROUNDING)]
        if not fits and getattr(function, "reduction", None) == "mean":  # weights of classes, or classes left out
            apart: Any = copy.deepcopy(function)
            apart.reduction = "none"
            share = float(whole / apart(h, y).mean())
            each, fits = (lambda h, y: share * apart(h, y)), ["mean"]
            values = each(h, y)
    except Exception as error:
        raise InputError(f"the loss of outputs {tuple(h.shape)} and labels {tuple(y.shape)}: {_told(error)}") from error
    if values.shape != y.shape[:1] or not fits:
        needed = "a number for each sample, nor their mean or sum"
        raise InputError(f"the loss gives numbers {tuple(whole.shape)} for {len(y)} samples, neither {needed}")
    one_of = data.classes and data.labels.ndim == 1 and len(network._shape) == 1 and network.outputs is not None
    within = one_of and data.labels.min() >= 0 and data.labels.max() < network._shape[0]
    own = (OwnClasses if within else OwnLoss)(reduction=fits[0])
    own._each, own._whole, own._shape, own._data = each, function, network._shape, data
    return own
