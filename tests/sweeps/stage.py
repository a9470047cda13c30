"""Processes of a sweep that can be killed at any moment: drivers, a Dask scheduler, its workers.

They are forked from one server that has imported everything, so that one more takes milliseconds.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from multiprocessing import forkserver
from pathlib import Path
from random import Random
from unittest import mock

from dynamics_cli.sweeps.directory import read_sweep
from dynamics_cli.sweeps.grid import parse_axis
from dynamics_cli.sweeps.jobs import PlannedSweep
from tests.sweeps.test_grid import BASE

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.sweeps.warm"])
LONG = ["optimizer.iterations=60000", "backend=compiled"]
GRID = ("architecture.width=3,4,5,8", "optimizer.lr=0.01,0.02", "loss.kind=mse,half_mse")


def plan(seeds=2):
    """Return a sweep of 32 jobs, or of more `seeds`, in 8 tasks."""
    return PlannedSweep(BASE, LONG, [parse_axis(text) for text in GRID], seeds=seeds)


def drive(directory, scheduler, shard, workers, log, keep=False, seeds=2):
    """Do what `dyn sweep` does; `keep` the process that calls as it is."""
    with Path(log).open("a") as stream:
        if not keep:
            os.dup2(stream.fileno(), 2)
        from dynamics_cli.errors import RunError
        from dynamics_cli.sweeps.sweep import by_dask, run_sweep

        engine = by_dask(scheduler) if scheduler else None
        try:
            run_sweep(plan(seeds), out=Path(directory), engine=engine, shard=shard, workers=workers)
        except RunError as error:
            print(error, file=stream)
            if keep:
                raise
            os._exit(7)


def schedule(port, log):
    """Be a Dask scheduler."""
    asyncio.run(_serve("Scheduler", log, port=port, dashboard=False))


def serve(port, log):
    """Be a worker of it, of one thread."""
    asyncio.run(_serve("Worker", log, f"tcp://127.0.0.1:{port}", nthreads=1, dashboard=False, death_timeout=60))


async def _serve(name, log, *arguments, **options):
    import distributed

    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), 2)
    async with getattr(distributed, name)(*arguments, **options) as server:
        await server.finished()


class Stage:
    """Processes by name, of which some are killed while they work."""

    def __init__(self, log: Path, seed: int) -> None:
        self.log, self.random, self.kills = log, Random(seed), 0
        with mock.patch.dict(os.environ, OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1"):  # as workers have
            forkserver.ensure_running()
        self.running: dict[str, multiprocessing.Process] = {}
        self._how: dict[str, tuple] = {}

    def start(self, name, target, *arguments):
        """Begin a process, or begin it again."""
        self._how[name] = target, arguments
        self.running[name] = CONTEXT.Process(target=target, args=(*arguments, str(self.log)))
        self.running[name].start()

    def kill(self, name):
        """Kill a process, as a system without memory does, and begin it again."""
        process = self.running[name]
        if process.is_alive():
            process.kill()
            self.kills += 1
        process.join()

    def again(self):
        """Begin what has ended, but drivers that have done all, again."""
        for name, process in list(self.running.items()):
            if not process.is_alive() and not (name.startswith("driver") and process.exitcode == 0):
                target, arguments = self._how[name]
                self.start(name, target, *arguments)

    def play(self, drivers, kills, most=900.0, pause=(0.05, 1.0)):
        """Kill at random until all drivers have done all, at most `kills` times; return whether they have."""
        end, before = time.monotonic() + most, self.kills
        while time.monotonic() < end:
            time.sleep(self.random.uniform(*pause))
            if all(self.running[name].exitcode == 0 for name in drivers):
                return True
            if self.kills - before < kills:
                self.kill(self.random.choice(list(self.running)))
            self.again()
        return False

    def close(self):
        """End all."""
        for process in self.running.values():
            process.kill()
            process.join()
        self.running = {}


def sealed(directory):
    """Whether the table of a sweep is complete."""
    return "table" in read_sweep(directory)
