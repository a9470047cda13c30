"""Training runs in processes of their own, which save and leave when their parent is interrupted, or dies."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import DynError, RunError
from dynamics_cli.kinds.registry import loaded_kinds
from dynamics_cli.training.session import obtain_run, plan_run
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
Todo = Sequence[tuple[Any, ...]]
"""The arguments of each call."""
MOST_SENT = 1000
"""Calls that an executor is given at once."""


def run_in_processes(
    todo: Todo,
    *,
    call: Call,
    executor: Executor | None = None,
    workers: int | None = None,
    look: Callable[[], object] | None = None,
) -> Iterator[tuple[int, str]]:
    """Call with each of some arguments, in any order; yield the place of each as it ends, and why it failed or "".

    A call whose process is killed is done once more in another one, where training goes on from its last checkpoint.

    Args:
        todo: the arguments.
        call: a function of a module, which trains.
        executor: where it runs; by default spawned processes of one thread each, one per core.
        workers: number of those processes.
        look: called between two looks at an executor.

    Raises:
        Interrupted: SIGINT or SIGTERM came; what was done is kept, and the same call goes on from there.
        RunError: the executor is broken.

    """
    if not todo:
        return
    number = None
    ending = (
        _by_executor(todo, call, executor, look)
        if executor
        else _by_workers(todo, call, workers or os.cpu_count() or 1)
    )
    for k, ended in ending:
        if isinstance(ended, str):
            yield k, ended
        else:
            number = ended
    if number is not None:
        raise Interrupted(STOPPED, number)


def _by_executor(
    todo: Todo, call: Call, executor: Executor, look: Callable[[], object] | None
) -> Iterator[tuple[int, str | int]]:
    """Yield how each ended; after a signal its number, when those that had begun have ended."""
    waiting, futures, stopping = iter(range(len(todo))), dict[Future[str | int], int](), False
    with SignalWatch() as watch:
        while True:
            for k in itertools.islice(waiting, 0 if stopping else MOST_SENT - len(futures)):
                try:
                    futures[executor.submit(call, *todo[k])] = k
                except RuntimeError as error:  # also that of a pool one of whose processes died
                    raise RunError(f"{_BROKEN}: {error}") from error
            if not futures:
                break
            if look is not None:
                look()
            done, _ = wait(futures, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                k = futures.pop(future)
                if not future.cancelled():
                    yield k, _answer(future)
                elif not stopping:
                    raise RunError(f"{_BROKEN}: it gave up what it was to do")
            if watch.received is not None and not stopping:
                stopping = True
                futures = {future: k for future, k in futures.items() if not future.cancel()}
    if watch.received is not None:
        yield -1, watch.received


def _answer(future: Future[str | int]) -> str | int:
    """Return what a worker says of its task, or that it died of it."""
    try:
        return future.result()
    except BrokenExecutor as error:
        raise RunError(f"{_BROKEN}: {error}") from error
    except Exception as error:
        if type(error).__name__ == "KilledWorker":  # of Dask, after some tries
            return KILLED
        raise


def _by_workers(todo: Todo, call: Call, count: int) -> Iterator[tuple[int, str | int]]:
    """Yield how each ended; after a signal its number, when no worker is busy saving any more."""
    waiting, tries, number = deque(range(len(todo))), Counter[int](), None
    with _Workers() as workers, SignalWatch() as watch:
        while workers.busy or (waiting and number is None):
            while waiting and number is None and len(workers.busy) < count:
                k = waiting.popleft()
                workers.begin(k, (call, todo[k]))
            for k, ended in workers.look():
                tries[k] += ended is None
                if isinstance(ended, int):  # a terminal signals parent and workers alike
                    number = ended
                elif ended is not None or tries[k] >= TRIES:
                    yield k, KILLED if ended is None else ended
                else:
                    waiting.append(k)
            number = watch.received or number
            if number is not None:
                workers.interrupt()
        if number is None:
            workers.dismiss()
    if number is not None:
        yield -1, number


class _Workers:
    """Processes, each of which does one task after the other; leaving the context kills those that are left."""

    def __init__(self) -> None:
        self.busy: dict[Connection, int] = {}
        """What each works at that has something to do."""
        self._context = multiprocessing.get_context("spawn")
        self._stop, self._stopped = self._context.Pipe(duplex=False)
        self._processes: dict[Connection, BaseProcess] = {}

    def __enter__(self) -> Self:
        return self

    def begin(self, k: int, task: tuple[Call, tuple[Any, ...]]) -> None:
        """Give a task to a process that has none, or to a new one."""
        idle = next((ours for ours in self._processes if ours not in self.busy), None)
        if idle is None:
            idle, theirs = self._context.Pipe()
            self._processes[idle] = self._context.Process(target=_serve, args=(theirs, self._stop))
            with _held_back():
                self._processes[idle].start()
            theirs.close()
        self.busy[idle] = k
        with suppress(OSError):  # it died: `look` tells
            idle.send(task)

    def look(self) -> Iterator[tuple[int, str | int | None]]:
        """Yield how tasks ended meanwhile: "" or why it failed, the number of a signal, or None for a dead process."""
        for ours in connection.wait(list(self.busy), timeout=_LOOK_SECONDS):
            assert isinstance(ours, Connection)
            k = self.busy.pop(ours)
            try:
                ended = ours.recv()
            except (EOFError, OSError):
                ours.close()
                self._processes.pop(ours).join()
                ended = None
            if isinstance(ended, _Bug):
                raise RuntimeError(ended.text)
            yield k, ended

    def interrupt(self) -> None:
        """Let the processes save and end what they do; they also do so when this one dies."""
        self._stopped.close()

    def dismiss(self) -> None:
        """Wait for the ends of processes that have nothing to do any more."""
        for ours, process in self._processes.items():
            ours.close()
            process.join()
        self._processes = {}

    def __exit__(self, *_: object) -> None:
        # interrupted, and all has been saved; or a second signal, or a fault, after which nothing more is saved
        for process in self._processes.values():
            process.kill()
            process.join()
        self._stopped.close()
        self._stop.close()


def train_alone(config: RunConfig, directory: Path) -> str | int:
    """Train a config, or go on with it; return "", why that failed, or the number of the signal that came."""
    try:
        obtain_run(plan_run(config, directory), resume=True)
    except Interrupted as error:
        return error.number
    except DynError as error:
        return str(error)
    return ""


@dataclass
class _Bug:
    """What a worker tells of a fault of the program."""

    text: str


def _serve(theirs: Connection, stop: Connection) -> None:
    """Do what the parent sends, one after the other, until it hangs up."""
    _begin(stop)
    loaded_kinds("loss")  # and with them the code of `--with`, to which the configs that come here may belong
    while True:
        try:
            call, arguments = theirs.recv()
        except EOFError:
            return
        _worker.busy = True
        try:
            answer: object = signal.SIGINT.value if _worker.stopping else call(*arguments)
        except Exception:  # the parent raises it
            answer = _Bug(traceback.format_exc())
        theirs.send(answer)
        _worker.busy = False


@dataclass
class _Worker:
    """What a worker process knows of itself."""

    busy: bool = False
    stopping: bool = False


_worker = _Worker()


@contextmanager
def _held_back() -> Iterator[None]:
    """Hold signals back while processes are started, which begin their lives with them held back too."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the first process would start it, after which no signal is held back
    former = signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_CODES)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _begin(stop: Connection) -> None:
    """Prepare a worker: one core, which its siblings leave it, and a thread that waits for word of its parent."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    import torch

    torch.set_num_threads(1)
    for number in EXIT_CODES:  # outside of training there is nothing to save: the parent ends this process
        signal.signal(number, _ignore)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, EXIT_CODES)
    threading.Thread(target=_obey, args=(stop,), daemon=True).start()


def _ignore(number: int, frame: object) -> None:
    """Take no notice; a function, since what is ignored by the system would stay so in processes started from here."""


def _obey(stop: Connection) -> None:
    """When the parent closes its end of the pipe, or dies, interrupt the training until this process has ended."""
    stop.poll(None)
    _worker.stopping = True
    parent = multiprocessing.parent_process()
    while _worker.busy or (parent is not None and parent.is_alive()):
        if os.name == "posix":
            os.kill(os.getpid(), signal.SIGINT)  # to the main thread, which may be asleep
        else:
            signal.raise_signal(signal.SIGINT)
        time.sleep(_LOOK_SECONDS)
    os._exit(0)  # an orphan would wait for its next job for ever
