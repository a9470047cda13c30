"""Training runs in processes of their own, which save and leave when their parent is interrupted, or dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import DynError, RunError
from dynamics_cli.kinds.registry import WITH, loaded_kinds
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
Todo = Iterable[tuple[Any, ...]]
"""The arguments of each call, made when it begins."""
MOST_SENT = 1000
"""Calls that an executor is given at once."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def run_in_processes(
    todo: Todo,
    *,
    call: Call,
    executor: Executor | None = None,
    workers: int | None = None,
    look: Callable[[], object] | None = None,
) -> Iterator[tuple[int, str]]:
    """Call with each of some arguments, in any order; yield the place of each as it ends, and why it failed or "".

    A call whose process is killed is repeated in another process, where training goes on from its last checkpoint.

    Args:
        todo: the arguments.
        call: a function of a module, which trains.
        executor: where it runs; by default processes of a single thread, as many as cores.
        workers: number of those processes.
        look: called between two looks at the running calls.

    Raises:
        Interrupted: SIGINT or SIGTERM came; results are kept, and the same call goes on from there.
        RunError: the executor is broken.

    """
    fresh, again = enumerate(todo), deque[tuple[int, tuple[Any, ...]]]()
    tries, number = Counter[int](), None
    running: dict[Future[str | int], tuple[int, tuple[Any, ...], Executor]] = {}
    most = MOST_SENT if executor else workers or os.cpu_count() or 1
    with _Processes(executor) as processes, SignalWatch() as watch:
        while True:
            while number is None and len(running) < most and (one := again.popleft() if again else next(fresh, None)):
                future, where = processes.begin(call, one[1])
                running[future] = *one, where
            if not running:
                break
            if look is not None:
                look()
            for future in wait(running, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED).done:
                k, arguments, where = running.pop(future)
                ended = _answer(future, mortal=executor is None or number is not None)
                tries[k] += ended is None
                if ended is not None and where is not executor:
                    processes.free.append(where)
                if isinstance(ended, int):  # a terminal signals parent and workers alike
                    number = ended
                elif ended is not None or (tries[k] >= TRIES and number is None):
                    yield k, KILLED if ended is None else ended
                else:
                    again.append((k, arguments))
            number = watch.received or number
            if number is not None:
                processes.interrupt()
                for future in running:
                    future.cancel()
    if number is not None:
        raise Interrupted(STOPPED, number)


def _answer(future: Future[str | int], *, mortal: bool) -> str | int | None:
    """Return the answer of a worker; None where the process of a `mortal` executor died, or was never asked."""
    try:
        return future.result()
    except (BrokenExecutor, CancelledError) as error:
        if mortal:
            return None
        raise RunError(f"{_BROKEN}: {error}") from error
    except Exception as error:
        if type(error).__name__ == "KilledWorker":  # of Dask, after some tries
            return KILLED
        raise


class _Processes(ExitStack):
    """Executors of a single process, so that a killed process belongs to a known task; on leaving all are killed.

    A user's executor takes their place.
    """

    def __init__(self, executor: Executor | None) -> None:
        super().__init__()
        self.free: list[Executor] = []
        """Those that have nothing to do."""
        self._given = executor
        self._stop, self._stopped = multiprocessing.get_context("spawn").Pipe(duplex=False)
        self.callback(self._stop.close)
        self.callback(self._stopped.close)

    def begin(self, call: Call, arguments: tuple[Any, ...]) -> tuple[Future[str | int], Executor]:
        """Give a task to an executor; return its future answer, and the executor.

        Raises:
            RunError: the user's executor is broken.
        """
        try:
            if self._given is not None:
                paths = os.environ.get(WITH, "")
                return self._given.submit(_elsewhere, paths, call, *arguments), self._given
            idle = self._idle()
            with _held_back():
                return idle.submit(_serve, call, *arguments), idle
        except RuntimeError as error:  # also of a pool whose process died
            if self._given is None and isinstance(error, BrokenExecutor):
                return self.begin(call, arguments)
            raise RunError(f"{_BROKEN}: {error}") from error

    def _idle(self) -> Executor:
        if not self.free:
            from loky import ProcessPoolExecutor

            new = ProcessPoolExecutor(1, initializer=_begin, initargs=(self._stop,), env=_ONE_THREAD)
            self.callback(new.shutdown, kill_workers=True)
            self.free.append(new)
        return self.free.pop()

    def interrupt(self) -> None:
        """Let the processes save and end; they also do so when this process dies."""
        self._stopped.close()


def train_alone(config: RunConfig, directory: Path) -> str | int:
    """Train a config, or go on with it; return "", why that failed, or the number of the signal that came."""
    try:
        obtain_run(plan_run(config, directory), resume=True)
    except Interrupted as error:
        return error.number
    except DynError as error:
        return str(error)
    return ""


@contextmanager
def _held_back() -> Iterator[None]:
    """Hold signals back while a process may be started, which begins its life with them held back too."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # the first process would start it, after which no signal is held back
    former = signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_CODES)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


_busy = threading.Event()
"""Set while this worker trains."""


def _elsewhere(paths: str, call: Call, *arguments: Any) -> str | int:
    """Call with the code of `--with`, also on another machine of a cluster."""
    os.environ[WITH] = paths
    return call(*arguments)


def _serve(call: Call, *arguments: Any) -> str | int:
    _busy.set()
    try:
        return call(*arguments)
    finally:
        _busy.clear()


def _begin(stop: Connection) -> None:
    """Prepare a worker: the code of `--with`, to which configs may belong, and a thread that hears of the parent."""
    for number in EXIT_CODES:  # outside of training there is nothing to save
        signal.signal(number, _ignore)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, EXIT_CODES)
    threading.Thread(target=_obey, args=(stop,), daemon=True).start()
    loaded_kinds("loss")


def _ignore(number: int, frame: object) -> None:
    """Take no notice; a function, since a signal that the system ignores stays ignored in child processes."""


def _obey(stop: Connection) -> None:
    """When the parent closes its end of the pipe, or dies, interrupt the training, and end this process."""
    stop.poll(None)
    while _busy.is_set():
        if os.name == "posix":
            os.kill(os.getpid(), signal.SIGINT)  # to the main thread, which may be asleep
        else:
            signal.raise_signal(signal.SIGINT)
        time.sleep(_LOOK_SECONDS)
    os._exit(0)
