"""From exceptions to messages and exit codes (see "Errors and exit codes" in CONTRIBUTING.md)."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from dynamics_cli.errors import DynError

INTERRUPTED = 130


def guarded(run: Callable[[], Any]) -> int:
    """Return the exit code of `run` after telling what went wrong; a bug passes through, with its traceback."""
    _print_anything()
    try:
        code = run()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except DynError as error:
        _show_traceback()
        tell(error)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _show_traceback()
        click.echo("interrupted", err=True)
        return INTERRUPTED


def tell(error: DynError) -> None:
    """Print the message of a user's mistake on stderr; the problems of a config stand one a line, file first."""
    text = str(error)
    # a line that opens with its file and line can be clicked in terminals and editors
    click.echo(text if hasattr(error, "problems") else f"Error: {text}", err=True)


def hang_up() -> None:
    """Stop writing to stdout for good, so that nothing complains when the interpreter flushes it at its end."""
    with contextlib.suppress(io.UnsupportedOperation):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _show_traceback() -> None:
    if os.environ.get("DYN_TRACEBACK") == "1":
        traceback.print_exc()


def _print_anything() -> None:
    """Let names of files and signs that the terminal's encoding does not know be shown as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
