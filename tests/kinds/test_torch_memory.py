"""What a checkpoint holds of an object of `torch.optim`: the same after saving and reading, or a
refusal that names it.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import TorchOptimizer

from ..conftest import stranger_to_kinds

SHAPE = (3, 2)
Named = collections.namedtuple("Named", "a")


class Notes(torch.optim.SGD):
    """Notes something in its state, and something in its attributes, at every update."""

    note: ClassVar[Callable[[Any], Any]]
    attribute: ClassVar[Callable[[Any, int], Any]]

    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr)
        self.updates = 0
        self.noted = type(self).attribute(self, 0)

    def step(self, closure=None):
        super().step()
        self.updates += 1
        self.noted = type(self).attribute(self, self.updates)
        for w in self.param_groups[0]["params"]:
            self.state[w]["note"] = type(self).note(w)


KEPT = {
    "bfloat16": lambda w: torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "scalar of bfloat16": lambda w: torch.tensor(1.5, dtype=torch.bfloat16),
    "float8": lambda w: torch.ones(2, 2).to(torch.float8_e5m2),
    "complex": lambda w: torch.tensor([1 + 2j]),
    "bool": lambda w: torch.ones(2, dtype=torch.bool),
    "empty": lambda w: torch.empty(0),
    "size": lambda w: w.shape,
    "sparse": lambda w: torch.eye(2).to_sparse(),
    "twice": lambda w: [t := torch.ones(2), t],
    "ordered": lambda w: collections.OrderedDict(a=1),
    "nested": lambda w: {"a": [(1, {2: torch.ones(1)})], "s": {3, 4}},
    "not a number": lambda w: [float("inf"), None, True, "x"],
}
REFUSED = {
    "weight": (lambda w: w, "a weight itself"),
    "part of a weight": (lambda w: w.detach()[1:], "a weight itself, or a part"),
    "named": (lambda w: Named(1), r"tests\..*\.Named"),
    "function": (lambda w: abs, "abs"),
    "local function": (lambda w: lambda: w, "local object"),
}
CHANGES = {
    "number": lambda _, k: k // 10,
    "list": lambda _, k: [k // 10],
    "tensor": lambda _, k: torch.full((2,), float(k // 10)),
    "sparse": lambda _, k: (torch.eye(2) * (k // 10)).to_sparse(),
    "bfloat16": lambda _, k: torch.full((2,), float(k // 10), dtype=torch.bfloat16),
    "array": lambda _, k: np.full(2, k // 10),
    "mapping": lambda _, k: {"a": {"b": k // 10}},
    "object": lambda _, k: type("Inner", (), {})() if k < 10 else Holder(k),
    "generator": lambda _, k: torch.Generator().manual_seed(k // 10),
    "generator of numpy": lambda _, k: np.random.default_rng(k // 10),
    "deque": lambda _, k: collections.deque([k // 10]),
}
STAYS = {
    "weights": lambda self, _: [self.param_groups[0]["params"], {"groups": self.param_groups}],
    "itself": lambda self, _: self,
    "function": lambda _, k: lambda: k,
    "size": lambda _, k: torch.Size((2,)),
    "set": lambda _, k: {3, 1, 2},
}


class Holder:
    """An object with a number."""

    def __init__(self, k):
        self.k = k


def updater(note, attribute):
    class Noting(Notes):
        pass

    Noting.note = staticmethod(note)
    Noting.attribute = staticmethod(attribute)

    with stranger_to_kinds():

        class Kind(TorchOptimizer, kind="noting"):
            """Notes."""

            keeps: ClassVar[tuple[str, ...]] = ("updates",)

            def optimizer(self, parameters):
                return Noting(parameters, self.lr)

        kind = Kind(kind="noting", lr=0.1, iterations=20)
    w = torch.nn.Parameter(torch.ones(SHAPE))
    return kind.updater(["w"], [w]), w


def update(moving, w, times):
    for _ in range(times):
        moving.update([w], [torch.ones(SHAPE)], lr=0.1)


@pytest.mark.parametrize("what", KEPT)
def test_what_is_kept_is_the_same_afterwards(what):
    moving, w = updater(KEPT[what], lambda _, k: 0)
    update(moving, w, 2)
    saved = {name: torch.from_numpy(t.numpy().copy()) for name, t in moving.kept().items()}
    again, other = updater(KEPT[what], lambda _, k: 0)
    again.put(saved)
    before = moving._optimizer.state[w]["note"]
    after = again._optimizer.state[other]["note"]
    assert type(after) is type(before)
    if isinstance(before, torch.Tensor):
        assert (after.dtype, after.shape) == (before.dtype, before.shape)
    assert repr(after) == repr(before)
    assert again._optimizer.updates == 2


def test_what_a_checkpoint_of_before_holds_is_read():
    """It has tensors by name, and JSON of all else."""
    moving, w = updater(lambda w: torch.full((2,), 7.0), lambda _, k: 0)
    rest = [
        {
            "w": [
                "dict",
                [["note", ["tensor", "w/note", "cpu", "float32", [2]]], ["size", ["Size", [3, 2]]]],
            ]
        },
        [["dict", [["momentum", 0.25]]]],
        {"updates": 5},
    ]
    text = torch.frombuffer(bytearray(json.dumps(rest).encode()), dtype=torch.uint8)
    moving.put({"w/note": torch.tensor([1.5, 2.5]), "rest": text})
    assert moving._optimizer.state[w]["note"].tolist() == [1.5, 2.5]
    assert moving._optimizer.state[w]["size"] == torch.Size((3, 2))
    assert moving._optimizer.param_groups[0]["momentum"] == 0.25
    assert moving._optimizer.updates == 5


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_checkpoint_holds_is_refused(what):
    note, told = REFUSED[what]
    moving, w = updater(note, lambda _, k: 0)
    update(moving, w, 1)
    with pytest.raises(
        InputError, match=f"optimizer.kind noting: it remembers .*{told}.*, which a"
    ):
        moving.kept()


@pytest.mark.parametrize("what", CHANGES)
def test_an_attribute_that_changes_late_is_told_at_the_next_checkpoint(what):
    moving, w = updater(lambda w: 0, CHANGES[what])
    update(moving, w, 9)
    moving.kept()
    update(moving, w, 1)
    with pytest.raises(InputError, match=r"attribute noted changes .* keeps = \('noted',\)"):
        moving.kept()


@pytest.mark.parametrize("what", STAYS)
def test_an_attribute_that_a_new_optimizer_has_too_is_none(what):
    moving, w = updater(lambda w: 0, STAYS[what])
    update(moving, w, 12)
    moving.update([w], [torch.ones(SHAPE)], lr=0.05)
    assert moving.kept()


@pytest.mark.parametrize("name", [n for n in dir(torch.optim) if n[0].isupper()])
def test_no_optimizer_of_torch_is_told_of(name):
    """But those that need a closure, sparse gradients, or matrices."""
    made = getattr(torch.optim, name)
    if name in ("Optimizer", "LBFGS", "SparseAdam"):
        pytest.skip("it cannot be trained here")

    with stranger_to_kinds():

        class Kind(TorchOptimizer, kind="of_torch"):
            """One of torch."""

            def optimizer(self, parameters):
                return made(parameters, lr=self.lr)  # type: ignore[no-any-return]

        kind = Kind(kind="of_torch", lr=0.1, iterations=20)
    w = torch.nn.Parameter(torch.ones(SHAPE))
    moving = kind.updater(["w"], [w])
    update(moving, w, 12)
    assert moving.kept()
