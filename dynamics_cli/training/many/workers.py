"""Processes of one thread each that train, and the loop that gives tasks to them or to a cluster.

A worker saves and leaves when its parent is interrupted, or dies. It has a session of its own:
Ctrl-C reaches the parent alone, which then closes the connections.
"""

from __future__ import annotations

import importlib
import itertools
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from dynamics_cli.errors import RunError
from dynamics_cli.process import ONE_THREAD, THREADS, cores, torch_threads
from dynamics_cli.runs.code import COMMAND, command_line
from dynamics_cli.training.signals import EXIT_CODES, Interrupted, SignalWatch
from dynamics_cli.waiting import SILENT

LOOK_SECONDS = 0.05
"""Time between two looks for tasks that have ended, or a signal, while tasks run."""
REPORT_SECONDS = 0.5
"""Time between two reports of a process that trains."""
TRIES = 2
"""How often a run is begun or continued before it has failed, where its process was killed."""
KILLED = (
    f"its process was killed {TRIES} times, as by a system that runs out of memory: try fewer"
    " --workers"
)
LOST = ("KilledWorker", "UncompletedJobError")
"""Errors of Dask and of submitit that say so, perhaps after some tries."""
STOPPED = (
    "interrupted; finished jobs are kept, the states of the others are saved: the same command"
    " goes on"
)
MOST_SENT = 1000
"""Tasks that an executor is given at once."""
T = TypeVar("T")
Call = Callable[..., str | int]
"""Function of a module that trains; returns "", why it failed, or the number of a signal that
came.
"""


def run_by_executor(
    todo: Iterable[tuple[Any, ...]],
    *,
    call: Call,
    executor: Executor,
    look: Callable[[], object] = lambda: None,
) -> Iterator[tuple[int, str]]:
    """Call with each of some arguments, in any order.

    Yield the place of each as it ends, and why it failed or "".

    Arguments are made when their task is submitted. Of an executor `submit` is used, and `done`,
    `result` and `cancel` of its futures. `look` is called several times a second.

    Raises:
        Interrupted: SIGINT or SIGTERM came; results are kept, and the same call goes on from there.
        RunError: the executor is broken.
    """
    fresh = enumerate(todo)
    running = dict[int, Future[str | int]]()
    number: int | None = None
    with SignalWatch() as watch:
        try:
            while number is None:
                try:
                    for k, arguments in itertools.islice(fresh, MOST_SENT - len(running)):
                        running[k] = executor.submit(call, *arguments)
                    if not running:
                        return
                    began = time.monotonic()
                    done = [k for k, future in running.items() if future.done()]
                    for k in done:
                        ended = _result(running.pop(k))
                        if isinstance(ended, int):
                            number = ended
                        else:
                            yield k, ended
                except BrokenExecutor as error:
                    raise RunError(
                        f"the executor is gone; finished jobs are kept: {error}"
                    ) from error
                number = number or watch.received
                look()
                if not done:  # futures of submitit look for files, perhaps of a network disk
                    time.sleep(max(LOOK_SECONDS, 4 * (time.monotonic() - began)))
        finally:
            for future in running.values():
                future.cancel()
    raise Interrupted(STOPPED, number)


def _result(future: Future[str | int]) -> str | int:
    """Return the result of a call that has ended."""
    try:
        return future.result()
    except Exception as error:
        if type(error).__name__ in LOST:
            return KILLED
        raise


class Processes(ThreadPoolExecutor):
    """Executor of processes of one thread each, by default one for each core.

    Each thread here waits for a process.

    A call whose process is killed is repeated in another process, where training goes on from its
    last checkpoint. Leaving the context interrupts the processes.

    A function that is called takes the keyword `report`, a function that it may tell numbers.
    """

    def __init__(self, count: int | None = None) -> None:
        super().__init__(count or cores())
        self._workers: dict[int, _Worker] = {}
        """Thread -> its process."""
        self.reports: dict[int, float] = {}
        """Thread -> the last number that its call has told; 0 once that has ended."""
        self._closing = False

    def submit(self, fn: Callable[..., T], /, *args: Any) -> Future[T]:  # type: ignore[override]
        """Call a function of a module in one of the processes."""
        return super().submit(self._call, fn, args)

    def _call(self, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        thread = threading.get_ident()
        for _ in range(TRIES):
            if self._closing:
                break
            worker = self._workers.get(thread) or self._workers.setdefault(thread, _Worker())
            try:
                worker.connection.send((call.__module__, call.__name__, arguments))
                while isinstance(ended := worker.connection.recv(), float):
                    self.reports[thread] = ended
            except (EOFError, OSError):  # the process was killed
                self._workers.pop(thread).kill()
                continue
            finally:
                self.reports[thread] = 0.0
            if isinstance(ended, Exception):
                raise ended
            return ended
        return KILLED

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """Let all processes save and end."""
        self._closing = True
        try:
            for worker in [*self._workers.values()]:
                worker.interrupt()
            super().shutdown(wait, cancel_futures=cancel_futures)
        finally:
            for worker in self._workers.values():
                worker.kill()


class _Worker:
    """A process that serves calls from a connection."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        line = [sys.executable, "-P", "-m", __name__, str(theirs.fileno())]
        environment = {**os.environ, **ONE_THREAD, THREADS: torch_threads(), SILENT: "1"}
        environment[COMMAND] = command_line() or ""
        # torch's threads are as many as alone: those that spin would keep others from working
        environment["OMP_WAIT_POLICY"] = "PASSIVE"
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        self._process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=environment,
            start_new_session=True,
        )
        theirs.close()
        self.connection = Connection(os.dup(self._socket.fileno()))

    def interrupt(self) -> None:
        """Let the process save, answer and end; it also does so when this process dies."""
        self._socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self.connection.close()
        self._socket.close()


def serve(descriptor: int) -> None:
    """Serve calls from a connection until it is closed; runs in the process of a worker."""
    connection = Connection(descriptor)
    calls = queue.SimpleQueue[Any]()
    training = threading.Event()

    def listen() -> None:
        try:
            while True:
                calls.put(connection.recv())
        except (EOFError, OSError):  # the parent was interrupted, or is gone
            while training.is_set():
                os.kill(os.getpid(), signal.SIGINT)  # to the main thread, which may be asleep
                time.sleep(LOOK_SECONDS)
            os._exit(0)

    reported = 0.0

    def report(reached: float) -> None:
        nonlocal reported
        if time.monotonic() - reported > REPORT_SECONDS:
            reported = time.monotonic()
            with suppress(OSError):  # the parent is gone
                connection.send(float(reached))

    for number in EXIT_CODES:  # outside of training there is nothing to save
        signal.signal(number, lambda *_: None)
    threading.Thread(target=listen, daemon=True).start()
    while True:
        module, name, arguments = calls.get()
        training.set()
        try:
            ended = getattr(importlib.import_module(module), name)(*arguments, report=report)
        except Exception as error:
            ended = error
        with suppress(OSError):  # the parent is gone
            connection.send(ended)
        training.clear()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
