"""Exit codes and messages, whatever the command."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dynamics_cli.cli import guard, main, output
from dynamics_cli.jsonable import jsonable

from .conftest import Dyn, environment

PATCHED = """
import sys
from dynamics_cli.cli import main
import dynamics_cli.training.session as session
def plan_run(*_):
    {body}
session.plan_run = plan_run
main(["train", "toy.yaml"])
"""


def test_a_bug_shows_its_traceback(shell: Dyn) -> None:
    answer = shell(code=PATCHED.format(body="return 1 / 0"))
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("Traceback (most recent call last):")
    assert answer.err.endswith("ZeroDivisionError: division by zero\n")


def test_an_interrupt_before_training_is_exit_code_130(shell: Dyn) -> None:
    answer = shell(code=PATCHED.format(body="raise KeyboardInterrupt"))
    assert (answer.code, answer.out) == (130, "")
    assert answer.err.strip() == "interrupted"


def test_a_mistake_has_no_traceback_unless_asked_for(shell: Dyn) -> None:
    plain = shell("train", "no.yaml")
    told = "no.yaml: there is no such file, nor a bundled config of this name\n"
    assert (plain.code, plain.err) == (3, told)
    traced = shell("train", "no.yaml", env={"DYN_TRACEBACK": "1"})
    assert traced.code == 3
    assert traced.err.startswith("Traceback (most recent call last):")
    assert traced.err.endswith("\n" + told)


@pytest.mark.parametrize(
    ("name", "code"),
    [("UsageError", 2), ("InputError", 3), ("DataMissingError", 4), ("RunError", 7), ("DynError", 1)],
)
def test_the_exit_code_is_that_of_the_error(name: str, code: int, dyn: Dyn, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynamics_cli import errors
    from dynamics_cli.training import session

    def plan_run(*_: object) -> None:
        raise getattr(errors, name)("it went wrong")

    monkeypatch.setattr(session, "plan_run", plan_run)
    answer = dyn("train", "toy.yaml", "--json")
    assert (answer.code, answer.out, answer.err) == (code, "", "Error: it went wrong\n")


def test_python_dash_m_is_dyn(shell: Dyn) -> None:
    assert shell("--help").out.startswith("Usage: dyn [OPTIONS] COMMAND")


def test_a_reader_who_goes_away_ends_it_quietly(place: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "dynamics_cli", "config", "schema"],
        cwd=place,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 141
    assert err == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["config", "schema"], ["list", "figures", "--json"]])
def test_output_that_cannot_be_written_is_told(arguments: list[str], place: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "dynamics_cli", *arguments],
            cwd=place,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 7
    assert done.stderr == f"Error: the output cannot be written: {os.strerror(errno.ENOSPC)}\n"


def test_signs_that_the_terminal_does_not_know_are_escaped(shell: Dyn) -> None:
    answer = shell("list", "datasets", env={"PYTHONIOENCODING": "iso8859-5"})
    assert answer.code == 0
    assert r"\xb11 for margin losses" in answer.out


def test_without_standalone_mode_exceptions_pass() -> None:
    from dynamics_cli.config import ConfigError

    with pytest.raises(ConfigError):
        main(["train", "no.yaml"], standalone_mode=False)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536 * 1024, "1.5 MiB"), (2**70, "1048576.0 PiB")],
)
def test_sizes(count: float, text: str) -> None:
    assert output.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0312, "0.031 s"), (4, "4 s"), (40, "40 s"), (600, "10 min"), (7200, "2.0 h"), (864000, "10.0 days")],
)
def test_durations(seconds: float, text: str) -> None:
    assert output.duration(seconds) == text


def test_json_of_what_json_does_not_know() -> None:
    import numpy as np

    document = {"a": float("nan"), "b": [np.float64("inf"), np.arange(2)], 3: Path("x"), "c": (None, True)}
    assert jsonable(document, absolute=True) == {
        "a": None,
        "b": [None, [0, 1]],
        "3": str(Path.cwd() / "x"),
        "c": [None, True],
    }


def never_end() -> None:
    while True:
        pass


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_a_library_swallows_comes_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, code: int
) -> None:
    monkeypatch.setattr(guard, "AGAIN_SECONDS", 0.01)
    watched = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(each) for each in watched]

    def command() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), number)
            never_end()
        never_end()

    assert guard.guarded(command) == code
    assert capsys.readouterr().err == "interrupted\n"
    assert [signal.getsignal(each) for each in watched] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
