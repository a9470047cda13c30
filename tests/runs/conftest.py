from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamics_cli.config import RunConfig
from dynamics_cli.runs import RunWriter, files

LAST = 12  # iterations of the toy run
SNAPSHOTS = (0, 1, 2, 4, 7, 12)
CHUNK = 3  # iterations whose losses are appended at once, followed by a checkpoint


class Killed(BaseException):
    """Stands for SIGKILL: nothing reaches the disk after it."""


class Faults:
    """Counts the changes made through `files`, and fails or dies at one of them.

    `when` is `before`, `half` (a write that stops in the middle) or `after`; `how` is `kill` or an errno.
    """

    CHANGING = (
        "create", "write_at", "truncate", "replace", "remove", "make_directory", "remove_directory",
        "sync", "sync_directory",
    )  # fmt: skip

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self.at, self.when, self.how, self.dead = 0, -1, "before", "kill", False
        self.log: list[str] = []
        self.last = ""  # the change at which the last kill came
        for name in self.CHANGING:
            monkeypatch.setattr(files, name, self._wrap(name, getattr(files, name)))

    def plan(self, at: int, when: str = "before", how: Any = "kill") -> None:
        self.count, self.at, self.when, self.how, self.dead = 0, at, when, how, False
        self.log = []

    def dies(self, action: Callable[[], object]) -> bool:
        """Do something, and tell whether the planned kill came in the middle of it; no fault is planned after that."""
        try:
            action()
        except Killed:
            return True
        finally:
            last = self.log[-1] if self.log else ""
            self.plan(-1)
            self.last = last
        return False

    def _fail(self) -> None:
        if self.how == "kill":
            self.dead = True
            raise Killed
        raise OSError(self.how, "injected", "somewhere")

    def _wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any) -> Any:
            if self.dead:
                raise Killed
            now = self.count == self.at
            self.count += 1
            self.log.append(name)
            if now and self.when == "before":
                self._fail()
            if now and self.when == "half" and name == "write_at":
                handle, data, offset = args
                view = memoryview(data).cast("B")
                real(handle, view[: len(view) // 2], offset)
                self._fail()
            # What is on the disk cannot be told from what is in the page cache here, so nothing is waited for.
            result = None if name in ("sync", "sync_directory") else real(*args)
            if now:
                if result is not None:
                    result.close()
                self._fail()
            return result

        assert list(inspect.signature(real).parameters)
        return wrapped


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


@pytest.fixture
def config() -> RunConfig:
    return RunConfig.model_validate(
        {
            "name": "toy",
            "dataset": {"kind": "points", "x": [[-0.5], [2.0]], "y": [-1.0, 1.0], "append_bias": True},
            "architecture": {"kind": "two_layer", "width": 4},
            "initialization": {"kind": "balanced", "scale": 1e-3},
            "loss": {"kind": "mse"},
            "optimizer": {"kind": "gd", "lr": 0.01, "iterations": LAST},
        }
    )


class Toy:
    """A deterministic stand-in for training, written as the training loop is."""

    last, snapshots, chunk = LAST, SNAPSHOTS, CHUNK

    @staticmethod
    def weights(i: int) -> np.ndarray:
        return (np.arange(8, dtype=np.float32).reshape(4, 2) + 1) * np.float32(np.sin(i + 1))

    @classmethod
    def loss(cls, i: int) -> float:
        return float(np.square(cls.weights(i).astype(np.float64)).sum())

    @classmethod
    def snapshot(cls, writer: RunWriter, i: int) -> None:
        weights = cls.weights(i)
        writer.append_snapshot(i, {"hidden_weight": weights, "output_weight": weights[:, 0]}, {"norm": cls.loss(i)})

    @classmethod
    def train(cls, directory: Path, config: RunConfig, resume: bool = False, stop: int | None = None) -> None:
        writer = RunWriter.reopen(directory) if resume else RunWriter.create(directory, config, {"hash": "abc"})
        with writer:
            if writer.resumed:
                i = int(writer.resumed.meta["iteration"])
                np.testing.assert_array_equal(writer.resumed.arrays["w"], cls.weights(i))
            else:
                i = 0
                cls.snapshot(writer, 0)
            while i < cls.last:
                if stop is not None and i >= stop:
                    writer.checkpoint({"w": cls.weights(i)}, {"iteration": i})
                    writer.finish("interrupted", iterations=i, final_loss=cls.loss(i), seconds=0.5)
                    return
                steps = range(i, min(i + cls.chunk, cls.last))
                writer.append_losses(list(steps), [cls.loss(k) for k in steps])
                for k in steps:
                    i = k + 1
                    if i in cls.snapshots:
                        cls.snapshot(writer, i)
                writer.checkpoint({"w": cls.weights(i)}, {"iteration": i})
            writer.append_losses([i], [cls.loss(i)])
            writer.finish("complete", iterations=i, final_loss=cls.loss(i), seconds=1.0)


@pytest.fixture
def toy() -> type[Toy]:
    return Toy


@pytest.fixture
def finished(tmp_path: Path, config: RunConfig) -> Path:
    """A complete run."""
    directory = tmp_path / "toy-run"
    Toy.train(directory, config)
    return directory


@pytest.fixture
def unfinished(tmp_path: Path, config: RunConfig) -> Path:
    """A run killed after two checkpoints, in the middle of a snapshot."""
    directory = tmp_path / "toy-killed"
    writer = RunWriter.create(directory, config)
    Toy.snapshot(writer, 0)
    for i in (3, 6):
        writer.append_losses([i - 3, i - 2, i - 1], [Toy.loss(k) for k in (i - 3, i - 2, i - 1)])
        Toy.snapshot(writer, i)
        writer.checkpoint({"w": Toy.weights(i)}, {"iteration": i})
    writer.append_losses([6, 7], [Toy.loss(6), Toy.loss(7)])
    writer._snapshots._arrays["trajectory/hidden_weight"].append(Toy.weights(7)[None])
    writer.close()
    return directory
