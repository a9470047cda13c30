"""Exit codes and messages, whatever the command."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dynamics_cli import errors
from dynamics_cli.cli.guard import guarded
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.training import course, session
from tests.runs.damage import reseal

from .conftest import environment


def fail(monkeypatch, name, error, module=session):
    """Let training fail where this function of a module is called."""

    def failing(*_, **__):
        raise error

    monkeypatch.setattr(module, name, failing)


@pytest.mark.parametrize(
    ("module", "name", "told", "statuses"),
    [
        (session, "plan_run", "interrupted", []),
        (
            course,
            "build_stepper",
            "interrupted; the run is in run: --resume continues it",
            ["interrupted"],
        ),
    ],
)
def test_an_interrupt_before_training_is_exit_code_130(
    module, name, told, statuses, dyn, monkeypatch
):
    fail(monkeypatch, name, KeyboardInterrupt(), module)
    answer = dyn("train", "toy.yaml", "--out", "run")
    assert (answer.code, answer.out, answer.err.strip()) == (130, "", told)
    answer = dyn("train", "toy.yaml", "--out", "run", "--json", "--force")
    begun = [json.loads(answer.out)["status"]] if answer.out else []
    assert (answer.code, begun) == (130, statuses)


def test_a_mistake_has_no_traceback_unless_asked_for(dyn, monkeypatch):
    told = "Error: no.yaml: there is no such file, nor a bundled config of this name\n"
    plain = dyn("train", "no.yaml")
    assert (plain.code, plain.err) == (3, told)
    monkeypatch.setenv("DYN_TRACEBACK", "1")
    traced = dyn("train", "no.yaml")
    assert traced.code == 3
    assert traced.err.startswith("Traceback (most recent call last):")
    assert traced.err.endswith("\n" + told)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("UsageError", 2),
        ("InputError", 3),
        ("DataMissingError", 4),
        ("RunError", 7),
        ("DynError", 1),
    ],
)
def test_the_exit_code_is_that_of_the_error(name, code, dyn, monkeypatch):
    fail(monkeypatch, "plan_run", getattr(errors, name)("it went wrong"))
    answer = dyn("train", "toy.yaml", "--json")
    assert (answer.code, answer.out, answer.err) == (code, "", "Error: it went wrong\n")


def test_a_reader_who_goes_away_ends_it_quietly(place):
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "dynamics_cli", "list", "figures"],
        cwd=place,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 141
    assert err == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_told(place):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "dynamics_cli", "list", "figures"],
            cwd=place,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 7
    assert done.stderr == f"Error: the output cannot be written: {os.strerror(errno.ENOSPC)}\n"


@pytest.mark.skipif(os.name != "posix", reason="a shell closes the streams")
def test_streams_that_are_closed_lose_nothing(place):
    """No file of the run takes the place of a stream, to which libraries write."""
    closed = errno.EBADF
    told = f"Error: the output cannot be written: {os.strerror(closed)}\n"
    for run, streams, code, err in (("a", "2>&-", 0, ""), ("b", ">&-", 7, told)):
        command = f"{sys.executable} -m dynamics_cli train toy.yaml --out {run} {streams}"
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=place,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (code, err)
        assert Run(place / run).status == "complete"
        assert verify_run(place / run) == []
    assert "final loss" not in done.stdout


def test_a_working_directory_that_is_gone_is_told(dyn, place, monkeypatch):
    (place / "gone").mkdir()
    monkeypatch.chdir(place / "gone")
    (place / "gone").rmdir()
    answer = dyn("train", place / "toy.yaml")
    assert (answer.code, answer.err.count("\n")) == (7, 1)
    assert "cannot be made (No such file or directory)" in answer.err
    fail(monkeypatch, "plan_run", FileNotFoundError(errno.ENOENT, "No such file or directory"))
    answer = dyn("train", place / "toy.yaml")
    told = "Error: the working directory is gone: change to a directory that exists\n"
    assert (answer.code, answer.err) == (7, told)


def test_signs_that_the_terminal_does_not_know_are_escaped(shell):
    answer = shell("explain", "dataset.points", env={"PYTHONIOENCODING": "iso8859-5"})
    assert answer.code == 0
    assert r"\xb11 for margin losses" in answer.out


STEERING = "a\x1b[31mb\x9b2J\x07\u202ec\r\nd"
SHOWN = r"a\x1b[31mb\x9b2J\x07\u202ec\r\nd"


def test_a_run_of_somebody_else_does_not_steer_the_terminal(dyn, place):
    run = place / "run"
    assert dyn("train", "toy.yaml", "-q", "--out", run).code == 0
    reseal(run / "run.json", messages=[STEERING])
    for answer in (dyn("show", run), dyn("train", "toy.yaml", "--out", run)):
        assert answer.code == 0
        assert SHOWN in answer.out + answer.err
        assert not {*"\x1b\x9b\x07\r\u202e"} & {*answer.out, *answer.err}
    assert dyn("show", run, "--json").json["messages"] == [STEERING]


def test_a_config_of_somebody_else_does_not_steer_the_terminal(dyn, place):
    (place / "theirs.yaml").write_text(
        (place / "toy.yaml").read_text() + json.dumps(STEERING) + ": 1\n"
    )
    answer = dyn("config", "check", "theirs.yaml")
    assert (answer.code, len(answer.err.splitlines())) == (3, 1)
    assert f"theirs.yaml:7: {SHOWN}: unknown" in answer.err


def test_the_end_of_a_file_is_no_interruption(monkeypatch, dyn):
    fail(monkeypatch, "plan_run", EOFError("Ran out of input"))
    with pytest.raises(EOFError):
        dyn("train", "toy.yaml")


def test_what_cannot_be_read_is_told_of(dyn, place, monkeypatch):
    from dynamics_cli.runs.store import files

    assert dyn("train", "toy.yaml", "-q").code == 0
    listed = os.listdir

    def refuse(folder):
        if Path(folder).name == "secret":  # not by its mode, which an administrator may ignore
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return listed(folder)

    (place / "outputs/runs/secret").mkdir()
    monkeypatch.setattr(files.os, "listdir", refuse)
    found = dyn("list", "runs", "--json").json
    assert sorted(run["status"] for run in found) == ["complete", "damaged"]
    fail(monkeypatch, "plan_run", PermissionError(errno.EACCES, "Permission denied", "secret"))
    answer = dyn("train", "toy.yaml", "-q")
    assert (answer.code, answer.err) == (7, "Error: secret: permission denied\n")


def test_an_interrupt_while_modules_are_imported_has_no_traceback(place):
    start = "import signal, sys, os\nsignal.signal(2, signal.default_int_handler)\n"
    code = start + "import dynamics_cli.__main__\nos.kill(os.getpid(), 2)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize(
    ("number", "task", "state", "asked"),
    [
        (signal.SIGUSR1, "0", "RUNNING", ["show job 7_3", "requeue 7_3"]),
        (signal.SIGTERM, "0", "RUNNING", ["show job 7_3", "requeue 7_3"]),
        (signal.SIGTERM, "0", "CANCELLED", ["show job 7_3"]),
        (signal.SIGINT, "0", "RUNNING", []),
        (signal.SIGUSR1, "1", "RUNNING", []),  # the first task asks for all
    ],
)
def test_a_job_of_slurm_is_queued_again(number, task, state, asked, tmp_path, monkeypatch, capsys):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\necho JobState={state}\n')
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    array = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3", "SLURM_PROCID": task}
    for name, value in {"SLURM_JOB_ID": "10", **array}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "asked").touch()

    def run():
        try:
            os.kill(os.getpid(), number)
        except KeyboardInterrupt as stop:
            if number == signal.SIGTERM:  # as modules of pybind11 do
                raise ImportError("initialization failed") from stop
            raise

    assert guarded(run) == 128 + number
    assert (tmp_path / "asked").read_text().splitlines() == asked
    again = ["Slurm queues job 7_3 again"] if "requeue 7_3" in asked else []
    assert capsys.readouterr().err.splitlines() == ["interrupted", *again]
