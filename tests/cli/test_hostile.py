"""Documents with a good checksum that dyn never wrote: each is told of without a traceback, and nothing is followed."""

from __future__ import annotations

import copy
import os
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamics_cli.runs.store.checkpoints import read_checkpoint, save_checkpoint
from dynamics_cli.runs.store.sealed import seal, unseal
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.signals import Interrupted

from .conftest import Dyn

OTHERS: list[Any] = [None, 3, -1, "x", [], {}, [3], "/dev/zero", 10**30, True]
LONG = ["--set", "optimizer.iterations=20000000", "--set", "record.snapshots={kind: list, include: []}"]
few = pytest.mark.parametrize("count", [5, pytest.param(100_000, marks=pytest.mark.long)])


def changed(document: Any) -> Iterator[Any]:
    """Yield the document without each of its entries, at any depth, and with each of them replaced by others."""

    def places(part: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        for key in part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ():
            yield (*path, key)
            yield from places(part[key], (*path, key))

    for *above, key in list(places(document, ())):
        for other in (KeyError, *OTHERS):
            new = copy.deepcopy(document)
            part = new
            for step in above:
                part = part[step]
            if other is KeyError:
                del part[key]
            else:
                part[key] = other
            yield new


def some(document: Any, count: int) -> list[Any]:
    found = list(changed(document))
    return random.Random(0).sample(found, min(count, len(found)))


@few
def test_descriptions_of_sweeps(count: int, dyn: Dyn, place: Path) -> None:
    grid = ["--grid", "optimizer.lr=0.01,0.02", "--let", "initialization.scale=optimizer.lr"]
    assert dyn("sweep", "toy.yaml", *grid, "--out", "s", "--quiet").code == 0
    content = unseal((place / "s/sweep.json").read_bytes())[0]
    for new in some(content, count):
        (place / "s/sweep.json").write_bytes(seal(new))
        for command in (["verify", "s"], ["show", "s"], ["plot", "s", "--list"], ["list", "sweeps", "--root", "."]):
            assert dyn(*command).code in (0, 2, 7), (command, new)


@few
def test_documents_of_figures(count: int, dyn: Dyn, place: Path) -> None:
    figure = ["reproduce", "boursier2022-fig2", "--format", "png", "--quiet", "--set", "optimizer.iterations=50"]
    assert dyn(*figure).code == 0
    file = place / "outputs/figures/boursier2022-fig2.json"
    for new in some({k: v for k, v in unseal(file.read_bytes())[0].items() if k != "claims"}, count):
        file.write_bytes(seal(new))
        assert dyn("verify", file).code in (0, 7), new


@few
def test_descriptions_of_runs(count: int, dyn: Dyn, place: Path) -> None:
    assert dyn("train", "toy.yaml", "--out", "run", "--quiet").code == 0
    whole = (place / "run/run.json").read_bytes()
    for new in some(unseal(whole)[0], count):
        (place / "run/run.json").write_bytes(seal(new))
        for command in (["verify", "run"], ["show", "run"], ["plot", "run", "--list"], ["compare", "run", "run"]):
            assert dyn(*command).code in (0, 2, 3, 7), (command, new)


@few
def test_checkpoints(count: int, dyn: Dyn, place: Path) -> None:
    interrupted = place / "interrupted"
    plan = plan_run(config(LONG[1::2]), interrupted)
    with pytest.raises(Interrupted):
        obtain_run(plan, progress=lambda iteration, loss: os.kill(os.getpid(), signal.SIGINT))
    found = read_checkpoint(interrupted / "checkpoint.npz")
    owner = unseal((interrupted / "run.json").read_bytes())[0]["config_sha256"]
    cases: list[tuple[Any, Any]] = [(found.arrays, new) for new in changed(found.meta)]
    for name, array in found.arrays.items():
        rest = {key: value for key, value in found.arrays.items() if key != name}
        others = [np.zeros(()), np.zeros((3, 7)), np.full(array.shape, np.nan), array.astype(np.int8), array - 10**9]
        cases += [(rest, found.meta), *(({**rest, name: other}, found.meta) for other in others)]
    for arrays, meta in random.Random(0).sample(cases, min(count, len(cases))):
        shutil.rmtree(place / "run", ignore_errors=True)
        shutil.copytree(interrupted, place / "run")
        (place / "run/checkpoint-previous.npz").unlink(missing_ok=True)
        save_checkpoint(place / "run", arrays, meta, found.rows, found.checksums, owner)
        with pytest.MonkeyPatch.context() as patch:  # what is accepted need not train to its end
            patch.setattr("dynamics_cli.training.loop.TrainingLoop._train", lambda self: None)
            code = dyn("train", "toy.yaml", "--out", "run", "--resume", "--quiet", *LONG).code
        assert code in (0, 7, 130), (meta, {name: array.shape for name, array in arrays.items()})
        assert dyn("verify", "run").code in (0, 7)


def config(overrides: list[str]) -> Any:
    from dynamics_cli.config import load_config

    return load_config("toy.yaml", overrides)
