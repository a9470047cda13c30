"""Checkpoints with a good checksum that dyn never wrote; runs, sweeps and figures: tests/fuzz/run_directories.py."""

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

from dynamics_cli.config import load_config
from dynamics_cli.runs.store.checkpoints import read_checkpoint, save_checkpoint
from dynamics_cli.runs.store.sealed import unseal
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.signals import Interrupted
from tests.fuzz.run_directories import places

from .conftest import Dyn

OTHERS: list[Any] = [None, 3, -1, "x", [], {}, [3], "/dev/zero", 10**30, True]
LONG = ["--set", "optimizer.iterations=20000000", "--set", "record.snapshots={kind: list, include: []}"]


def changed(document: Any) -> Iterator[Any]:
    """Yield the document without each of its entries, at any depth, and with each of them replaced by others."""
    for k in range(len(list(places(document)))):
        for other in (KeyError, *OTHERS):
            new = copy.deepcopy(document)
            holder, key = list(places(new))[k]
            if other is KeyError:
                del holder[key]
            else:
                holder[key] = other
            yield new


@pytest.mark.parametrize("count", [5, pytest.param(100_000, marks=pytest.mark.long)])
def test_checkpoints(count: int, dyn: Dyn, place: Path) -> None:
    interrupted = place / "interrupted"
    plan = plan_run(load_config("toy.yaml", LONG[1::2]), interrupted)
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
