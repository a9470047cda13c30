from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from dynamics_cli.cli import main
from tests.cases import TOY as CONFIG

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Work in an empty directory that holds `toy.yaml` and nothing else, on a terminal that
    breaks no line.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    for name in ("DYN_OUTPUTS", "DYN_TRACEBACK", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "toy.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def dyn():
    """Call the command line in this process."""

    def call(*arguments, input=None):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return call


def environment(**more):
    # -W error stays out: what a user's interpreter warns of must not be an error here
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}


def start(place, *arguments, **pipes):
    """Begin `python -m dynamics_cli` in a process of its own; what it says is piped unless
    `pipes` say otherwise.
    """
    command = [sys.executable, "-m", "dynamics_cli", *map(str, arguments)]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
    return subprocess.Popen(command, cwd=place, env=environment(), text=True, **piped)


def wait_until(condition, process=None, limit=240):
    """Return once a condition holds, while a process goes on; fail after `limit` seconds."""
    deadline = time.monotonic() + limit
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def two(dyn):
    """A complete and a diverged run."""
    complete = dyn("train", "toy.yaml", "--json").json["path"]
    wild = ["--set", "architecture.activation=linear", "--set", "optimizer.lr=10"]
    return Path(complete), Path(dyn("train", "toy.yaml", "--json", *wild).json["path"])


@pytest.fixture
def shell(place):
    """Call `python -m dynamics_cli`, or `python -c code`, in a process of its own."""

    def call(*arguments, code=None, env=None, **more):
        start = ["-m", "dynamics_cli"] if code is None else ["-c", code]
        done = subprocess.run(
            [sys.executable, *start, *map(str, arguments)],
            cwd=place,
            env=environment(**(env or {})),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **more,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return call
