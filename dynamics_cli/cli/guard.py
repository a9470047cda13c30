"""From exceptions to messages and exit codes (see docs/reference/exit-codes.md)."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import click

from dynamics_cli.errors import DynError, RunError, RunWarning
from dynamics_cli.text import one_line, printable
from dynamics_cli.training.signals import Interrupted, SignalStop

SLURM_SECONDS = 20.0
"""Most time that a command of Slurm gets."""


def guarded(run: Callable[[], Any]) -> int:
    """Return the exit code of `run` after printing its error; a bug passes with its traceback.

    SIGTERM and SIGUSR1 end a command as SIGINT does, with temporary files removed, and with exit
    codes of their own; a job of Slurm is queued again.
    """
    _open_closed_streams()
    _print_anything()
    stop = SignalStop()
    try:
        with stop, _warnings_as_notes():
            code = run()
            sys.stdout.flush()
            return code if isinstance(code, int) else 0
    except DynError as error:
        _show_traceback()
        tell(error)
        if isinstance(error, Interrupted):
            _requeue(error.number)
        return error.exit_code
    except click.ClickException as error:
        with contextlib.suppress(OSError):  # nobody listens
            error.show()
        return error.exit_code
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        aborted = isinstance(error, (click.Abort, KeyboardInterrupt))
        if aborted and isinstance(error.__cause__, EOFError):  # click takes any for an end of input
            raise error.__cause__ from None
        # native code that is interrupted while it is imported raises an ImportError
        if aborted or stop.received is not None:
            _show_traceback()
            # click raises Abort from an error that says more
            _say(str(error.__cause__ or (error if aborted else "")) or "interrupted")
            number = stop.received or signal.SIGINT
            _requeue(number)
            return 128 + number
        if (text := _explained(error)) is None:
            raise
        _show_traceback()
        _say(f"Error: {text}")
        return RunError.exit_code


def _requeue(number: int) -> None:
    """Ask Slurm to queue the job again that a signal ends, unless the user has cancelled it.

    Of the tasks of a job the first one asks.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is None or number == signal.SIGINT or os.environ.get("SLURM_PROCID", "0") != "0":
        return
    if (array := os.environ.get("SLURM_ARRAY_JOB_ID")) is not None:
        job = f"{array}_{os.environ.get('SLURM_ARRAY_TASK_ID')}"
    try:
        if "JobState=CANCELLED" in _scontrol("show", "job", job):
            return
        _scontrol("requeue", job)
    except (OSError, subprocess.SubprocessError) as error:
        why = str(getattr(error, "stderr", None) or error).strip()
        _say(f"Slurm does not queue job {job} again: {why}")
    else:
        _say(f"Slurm queues job {job} again")


def _scontrol(*arguments: str) -> str:
    return subprocess.run(
        ["scontrol", *arguments], check=True, capture_output=True, text=True, timeout=SLURM_SECONDS
    ).stdout


def tell(error: DynError) -> None:
    """Print the message of a user's mistake on stderr, one line for each problem of a config."""
    problems = getattr(error, "problems", [error])
    _say("\n".join(f"Error: {one_line(str(problem))}" for problem in problems))


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # stderr may have gone away
        click.echo(printable(text), err=True)


def _explained(error: BaseException) -> str | None:
    """Return what is told of an error of a file, or in code of others; None for a bug of ours."""
    if isinstance(error, PermissionError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: permission denied"
    if isinstance(error, FileNotFoundError) and not _has_working_directory():
        return "the working directory is gone: change to a directory that exists"
    # without the registry there is no code of others
    registry: Any = sys.modules.get("dynamics_cli.kinds.registry")
    if registry is None or isinstance(error, OSError):
        return None
    return registry.place_of(error)  # type: ignore[no-any-return]


def _has_working_directory() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - whether it can be told is all that is asked
    except FileNotFoundError:
        return False
    return True


def hang_up() -> None:
    """Stop writing to stdout for good, so that nothing complains as the interpreter ends."""
    with contextlib.suppress(io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Say in one line on stderr what a run warns of; other warnings are Python's."""
    shown_by_python = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, RunWarning):
            _say(f"note: {message}")
        else:
            shown_by_python(message, category, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", RunWarning)
        warnings.showwarning = show
        yield


def _show_traceback() -> None:
    if os.environ.get("DYN_TRACEBACK") == "1":
        traceback.print_exc()


def _open_closed_streams() -> None:
    """Open the standard streams that the shell has closed, so that no file gets their numbers.

    What is said on stderr goes nowhere. stdout is opened for reading, so that `emit` fails and
    tells why.
    """
    wanted = (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))
    for name, flags in wanted:  # by number: a file that is opened gets the lowest one that is free
        if getattr(sys, name) is None:
            number = os.open(os.devnull, flags)
            os.set_inheritable(number, True)  # workers have the same streams
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def _print_anything() -> None:
    """Let signs that the terminal's encoding does not know be shown as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
