"""Worker processes of one thread each, which save and leave when their parent is interrupted, or dies.

A worker is a process of its own for a connection of its own, so that a killed process is known by its task.
Each worker has a session of its own: Ctrl-C reaches the parent alone, which then closes the connections.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future
from concurrent.futures import wait as wait_for_futures
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from dynamics_cli.errors import RunError
from dynamics_cli.kinds.registry import WITH
from dynamics_cli.training.signals import EXIT_CODES, Interrupted, SignalWatch

_LOOK_SECONDS = 0.1
"""Time between two looks for a signal while the workers work."""
TRIES = 2
"""How often a run is begun or gone on with before it has failed, where its process was killed."""
KILLED = f"its process was killed {TRIES} times, as by a system that runs out of memory: try fewer --workers"
_BROKEN = "the executor is gone; what is done is kept, and the same command goes on"
STOPPED = "interrupted; what is done is kept, the states of the others are saved: the same command goes on"
Call = Callable[..., str | int]
"""Trains; returns "", why it failed, or the number of a signal that came."""
Todo = Iterable[tuple[Any, ...]]
"""The arguments of each call, made when it begins."""
MOST_SENT = 1000
"""Calls that an executor is given at once."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from dynamics_cli.sweeps.workers import serve; serve(int(sys.argv[2]))"
)


def run_in_processes(todo: Todo, *, call: Call, workers: int | None = None) -> Iterator[tuple[int, str]]:
    """Call with each of some arguments, in any order; yield the place of each as it ends, and why it failed or "".

    A call whose process is killed is repeated in another process, where training goes on from its last checkpoint.

    Args:
        todo: the arguments.
        call: a function of a module, which trains.
        workers: number of processes, by default one for each core.

    Raises:
        Interrupted: SIGINT or SIGTERM came; results are kept, and the same call goes on from there.
    """
    fresh, again = enumerate(todo), deque[tuple[int, tuple[Any, ...]]]()
    tries, number = Counter[int](), None
    idle: list[_Worker] = []
    busy: dict[_Worker, tuple[int, tuple[Any, ...]]] = {}
    with ExitStack() as stack, SignalWatch() as watch:
        while True:
            most = 0 if number is not None else workers or os.cpu_count() or 1
            while len(busy) < most and (one := again.popleft() if again else next(fresh, None)):
                worker = idle.pop() if idle else stack.enter_context(_Worker())
                worker.begin(call, one[1])
                busy[worker] = one
            if not busy:
                break
            ready = wait([worker.connection for worker in busy], timeout=_LOOK_SECONDS)
            for worker in [one for one in busy if one.connection in ready]:
                k, arguments = busy.pop(worker)
                ended = worker.answer()
                tries[k] += ended is None
                if ended is not None:
                    idle.append(worker)
                if isinstance(ended, int):
                    number = number or ended
                elif ended is not None or (tries[k] >= TRIES and number is None):
                    yield k, KILLED if ended is None else ended
                else:
                    again.append((k, arguments))
            number = number or watch.received
            if number is not None:
                for worker in busy:
                    worker.interrupt()
    if number is not None:
        raise Interrupted(STOPPED, number)


class _Worker:
    """A process that trains what comes through a connection; on leaving it is killed."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        command = [sys.executable, "-c", _START, json.dumps(sys.path), str(theirs.fileno())]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=os.environ | _ONE_THREAD,
            start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self.connection = Connection(os.dup(self._socket.fileno()))

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self.connection.close()
        self._socket.close()

    def begin(self, call: Call, arguments: tuple[Any, ...]) -> None:
        """Send a call; where the process has died, its answer says so."""
        with suppress(OSError):
            self.connection.send((call.__module__, call.__name__, arguments))

    def answer(self) -> str | int | None:
        """Return what the call returned, or raise what it raised; None where the process died."""
        try:
            found = self.connection.recv()
        except (EOFError, OSError):
            return None
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[no-any-return]  # of `call`

    def interrupt(self) -> None:
        """Let the process save, answer and end; it also does so when this process dies."""
        self._socket.shutdown(socket.SHUT_WR)


def serve(descriptor: int) -> None:
    """Train what comes through a connection until it is closed; in the process of a worker."""
    connection, calls, training = Connection(descriptor), queue.SimpleQueue[Any](), threading.Event()

    def listen() -> None:
        try:
            while True:
                calls.put(connection.recv())
        except (EOFError, OSError):  # the parent was interrupted, or is gone
            while training.is_set():
                os.kill(os.getpid(), signal.SIGINT)  # to the main thread, which may be asleep
                time.sleep(_LOOK_SECONDS)
            os._exit(0)

    for number in EXIT_CODES:  # outside of training there is nothing to save
        signal.signal(number, lambda *_: None)
    threading.Thread(target=listen, daemon=True).start()
    while True:
        module, name, arguments = calls.get()
        training.set()
        try:
            ended = getattr(importlib.import_module(module), name)(*arguments)
        except Exception as error:
            ended = error
        with suppress(OSError):  # the parent is gone
            connection.send(ended)
        training.clear()


def run_by_executor(todo: Todo, *, call: Call, executor: Executor) -> Iterator[tuple[int, str]]:
    """Do as `run_in_processes` by the executor of a cluster, whose machines see the directories of runs.

    Raises:
        Interrupted: as `run_in_processes`.
        RunError: the executor is broken.
    """
    fresh, running = enumerate(todo), dict[Future[str | int], int]()
    number: int | None = None
    with SignalWatch() as watch:
        while number is None:
            try:
                while len(running) < MOST_SENT and (one := next(fresh, None)):
                    running[executor.submit(_with_kinds, os.environ.get(WITH, ""), call, *one[1])] = one[0]
                if not running:
                    return
                for future in wait_for_futures(running, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED).done:
                    k, ended = running.pop(future), _result(future)
                    if isinstance(ended, int):
                        number = ended
                    else:
                        yield k, ended
            except RuntimeError as error:  # also of a pool whose process died
                raise RunError(f"{_BROKEN}: {error}") from error
            number = number or watch.received
        for future in running:
            future.cancel()
    raise Interrupted(STOPPED, number)


def _result(future: Future[str | int]) -> str | int:
    try:
        return future.result()
    except Exception as error:
        if type(error).__name__ == "KilledWorker":  # of Dask, after some tries
            return KILLED
        raise


def _with_kinds(paths: str, call: Call, *arguments: Any) -> str | int:
    """Call with the code of `--with`, also on another machine."""
    os.environ[WITH] = paths
    return call(*arguments)
