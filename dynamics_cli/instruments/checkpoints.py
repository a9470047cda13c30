"""States of a network as others keep them: state dicts and files, their tensors, their steps."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dynamics_cli.errors import InputError
from dynamics_cli.text import shorten
from dynamics_cli.training.obstacles import LONGEST

PREFIXES = ("module.", "model.")
"""What wrappers of networks put before the names of weights."""
NESTED = ("state_dict", "model_state_dict", "model")
"""Keys under which checkpoints of training loops hold the state dict."""
OPTIMIZERS = ("optimizer_state_dict", "optimizer", "optimizer_states", "optim")
"""Keys under which they hold the optimizer's state, Lightning a list of them."""
_UNITS = {
    "step": r"(?:global[_-]?)?steps?|iter(?:ation)?s?|it",
    "epoch": r"epochs?|ep",
}
"""What counts states in names of checkpoints, such as `epoch=3-step=400`: the finest first."""
_WHOLE = r"(\d+)(?![\d.]*\d|e[+-]?\d)"
"""A whole number, no beginning of a decimal number."""
_SAY = "give the steps: checkpoints=[(100, FILE), ...], or step=100 of a single one"


class CheckpointState(NamedTuple):
    """A state that is to be measured."""

    iteration: int
    file: str | None
    """None where the weights are given as tensors."""
    weights: Any
    """A file, a state dict or a module; None for the weights that the model came with."""


def file_name(given: Any) -> str | None:
    """Return the name of a checkpoint that is a file; None for tensors."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    return None


def listed(checkpoints: Any, step: int | None) -> list[CheckpointState]:
    """Return the checkpoints with their iterations, in the order in which they are given.

    State dicts without iterations have their places in the list.

    Raises InputError: `step` is given for several, or the names of files give no clear steps.
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
    pairs: list[tuple[int | None, Any]] = []
    for given in checkpoints:
        is_pair = isinstance(given, tuple) and len(given) == 2
        pairs.append(given if is_pair else (None, given))

    unknown = [file_name(weights) for iteration, weights in pairs if iteration is None]
    stems = [Path(file).stem for file in unknown if file is not None]
    steps: Iterator[int] = iter(())
    if stems:
        found = steps_of(stems) if len(stems) == len(unknown) else None
        if found is None and len(pairs) > 1:
            told = shorten(", ".join(stems), LONGEST)
            raise InputError(f"the names of the checkpoints give no steps: {told}; {_SAY}")
        steps = iter(found or ())
    states = []
    for place, (iteration, weights) in enumerate(pairs):
        step = next(steps, place) if iteration is None else iteration
        states.append(CheckpointState(step, file_name(weights), weights))
    return states


def steps_of(names: Sequence[str]) -> list[int] | None:
    """Return the steps that names of checkpoints give; None where they have no numbers.

    The names are without the suffixes of files. Steps are the numbers behind `step` or `iter`, else
    behind `epoch`; else each name has a single whole number. Decimal numbers, which are losses, and
    a version `-v1` at the end are none.

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
        written = shorten(", ".join(map(str, steps)), LONGEST)
        raise InputError(
            f"the names of the checkpoints give steps that do not increase: {written}; "
            f"list the files in the order of training, or {_SAY}"
        )
    return steps


def tensors_of(given: Any) -> dict[str, Tensor]:
    """Return the tensors of a module, a state dict, or a file of a state dict, by name.

    Raises InputError: there is no such file, or it holds something else.
    """
    if (file := file_name(given)) is not None:
        given = _loaded(file)
    if isinstance(given, nn.Module):
        given = given.state_dict()
    if isinstance(given, Mapping):
        state = next((given[key] for key in NESTED if isinstance(given.get(key), Mapping)), given)
        if all(isinstance(k, str) and isinstance(v, Tensor | np.ndarray) for k, v in state.items()):
            # `torch.compile` adds `_orig_mod.`; arrays are copied, since they may be read-only
            return {k.replace("_orig_mod.", ""): _tensor(v) for k, v in state.items()}
    raise InputError("a checkpoint is no state dict: names with tensors")


def optimizer_state(given: Any) -> Mapping[str, Any]:
    """Return the state dict of the optimizer in a checkpoint, or in a file of it.

    Raises InputError: there is none.
    """
    if (file := file_name(given)) is not None:
        given = _loaded(file)
    if isinstance(given, Mapping):
        for key in OPTIMIZERS:
            state = given.get(key)
            if isinstance(state, list | tuple) and len(state) == 1:
                (state,) = state
            if isinstance(state, Mapping) and {"state", "param_groups"} <= set(state):
                return state
    raise InputError(
        f"{file or 'checkpoint'}: it has no state of the optimizer, which preconditioned_sharpness"
        ' needs; save {"model": model.state_dict(), "optimizer": optimizer.state_dict()}'
    )


def _tensor(values: Tensor | np.ndarray) -> Tensor:
    if isinstance(values, Tensor):
        return values
    return torch.from_numpy(np.array(values))


def _loaded(file: str) -> Any:
    """Return the contents of a file of torch; nothing in it is executed."""
    if Path(file).exists() and not Path(file).is_file():  # a pipe would be waited for
        raise InputError(f"{file}: it is not a regular file")
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{file}: it cannot be read ({error.strerror or error})") from error
    except Exception as error:
        # torch raises anything for damaged files, and for files of others than tensors
        made = (
            "a file of `torch.save(model.state_dict(), FILE)` is needed; others are not unpickled"
        )
        raise InputError(f"{file}: {made}") from error


def fitting(tensors: dict[str, Tensor], names: Collection[str]) -> dict[str, Tensor]:
    """Return tensors without the prefixes of wrappers, unless a name fits as it is.

    `module.` stands before names of parallel and averaged models, `model.` before names of
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
