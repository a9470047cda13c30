"""Engines: where the tasks of a sweep run; each is told a directory and numbers, and may die at any moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.sweeps.sweep import Engine
from dynamics_cli.sweeps.tasks import work
from dynamics_cli.sweeps.workers import run_in_processes


def by_executor(executor: Executor) -> Engine:
    """Return an engine that gives tasks to a `concurrent.futures.Executor`, such as that of Parsl."""

    def run(directory: str, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        for k, why in run_in_processes([(directory, number) for number in numbers], call=work, executor=executor):
            yield numbers[k], why

    return run


def by_dask(scheduler: str) -> Engine:
    """Return an engine that gives tasks to the workers of a Dask scheduler, which see the directory of the sweep.

    Raises:
        UsageError: Dask is not installed.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("--engine dask needs dask.distributed: pip install 'dynamics-cli[dask]'") from error

    def run(directory: str, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        try:
            client = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise RunError(f"no Dask scheduler answers at {scheduler}: {error}") from error
        with client:
            executor = client.get_executor(pure=False)
            yield from by_executor(executor)(directory, numbers)

    return run


CONNECT_SECONDS = 10
"""How long a scheduler may take to answer."""
