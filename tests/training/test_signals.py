"""Signals in the middle of slow work, and second ones: nothing is torn, and going on gives the same bits."""

from __future__ import annotations

import math
import os
import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.runs import load_run, verify_run
from dynamics_cli.runs.store import files
from dynamics_cli.training import loop, signals
from dynamics_cli.training.loop import TrainingLoop
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.signals import GivenUp, Interrupted, SignalWatch
from tests.runs.damage import arrays_of
from tests.training.kill_script import BASE, RUNS

SHORT = {"sgd": ["optimizer.epochs=20", "record.loss_every=7"], "gradient_flow": ["optimizer.points=60"]}


def short(name: str, *more: str) -> RunConfig:
    changes = SHORT.get(name, ["optimizer.iterations=60"])
    every = ["record.snapshots={kind: every, interval: 20}"]
    return load_config({**BASE, **RUNS[name], "name": name}, [*changes, *every, *more])


class Slow:
    """Makes one piece of a training slow: a signal comes in it, and it never ends by itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plan(-1)
        monkeypatch.setattr(loop, "SLOW_SECONDS", 0.0)
        monkeypatch.setattr(loop, "_next_chunk", lambda chunk, done, seconds: 9)
        monkeypatch.setattr(signals, "PATIENCE_SECONDS", 0.002)
        real = TrainingLoop._patiently

        def patiently(training: TrainingLoop, name: str, work: Callable[[], Any]) -> Any:
            def slow_work() -> Any:
                done = work()  # whatever it changes in the stepper must be undone
                self.names.append(name)
                if len(self.names) - 1 == self.at:
                    os.kill(os.getpid(), signal.SIGINT)
                    wait_for_ever()
                return done

            return real(training, name, slow_work)

        monkeypatch.setattr(TrainingLoop, "_patiently", patiently)

    def plan(self, at: int) -> None:
        self.at, self.names = at, list[str]()


def give_up(folder: Path, name: str, slow: Slow, least: int, *, full: bool, settings: tuple[str, ...] = ()) -> None:
    """Give up pieces of work one at a time, all or some, and at least so many."""
    config = short(name, *settings)
    slow.plan(-1)
    obtain_run(plan_run(config, folder / "whole"))
    names, expected = slow.names, arrays_of(folder / "whole")
    firsts = {names.index(kind) for kind in names}  # one of each kind, and the last
    chosen = range(len(names)) if full else sorted({*firsts, len(names) - 1})
    for at in chosen:
        case = f"{name}: {names[at]}, call {at}"
        directory = folder / f"{name}-{at}"
        slow.plan(at)
        with pytest.raises(Interrupted) as stop:
            obtain_run(plan_run(config, directory))
        assert stop.value.exit_code == 130, case
        assert load_run(directory).status == "interrupted", case
        assert verify_run(directory) == [], case
        slow.plan(-1)
        obtained = obtain_run(plan_run(config, directory), resume=True)
        assert arrays_of(directory) == expected, case
        whole = load_run(folder / "whole")
        assert repr(obtained.run.final_loss) == repr(whole.final_loss), case
        assert (obtained.run.status, obtained.run.info["stopped_early"]) == (whole.status, whole.info["stopped_early"])
    print(f"{name}: {len(chosen)} pieces of work given up")
    assert len(chosen) >= least


@pytest.mark.parametrize(
    ("name", "least", "full"),
    [
        *((name, 3, False) for name in ("compiled", "adam", "gradient_flow", "gan")),
        *(pytest.param(name, 10, True, marks=pytest.mark.long) for name in RUNS),
    ],
)
def test_slow_work_is_given_up_and_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, least: int, full: bool
) -> None:
    give_up(tmp_path, name, Slow(monkeypatch), least, full=full)


@pytest.mark.parametrize("name", ["compiled", "sgd"])
def test_slow_work_at_an_early_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The loss of the last state has been recorded, its snapshot has not."""
    whole = obtain_run(plan_run(short(name), tmp_path / "first")).run
    below = f"optimizer.stop_below={float(whole.losses[len(whole.losses) // 2])!r}"
    settings = (below, "backend=torch") if name == "sgd" else (below,)
    give_up(tmp_path, name, Slow(monkeypatch), 4, full=True, settings=settings)
    assert load_run(tmp_path / "whole").info["stopped_early"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_leaves_at_once_with_nothing_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The second one comes after a change of the disk that follows the first one."""
    monkeypatch.setattr(loop, "_next_chunk", lambda chunk, done, seconds: 9)
    monkeypatch.setattr(loop, "HELD_SECONDS", -1.0)
    config = short("compiled")
    obtain_run(plan_run(config, tmp_path / "whole"))
    left = math.inf  # changes until the second signal

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any) -> Any:
            nonlocal left
            done = real(*arguments)
            left -= 1
            if left == -1:
                os.kill(os.getpid(), signal.SIGINT)
            return done

        return change

    for name in ("create", "write_at", "replace", "sync", "sync_directory"):
        monkeypatch.setattr(files, name, counted(getattr(files, name)))

    def progress(reached: int, loss: float) -> None:
        nonlocal left
        if reached >= 30 and left == math.inf:
            left = at
            os.kill(os.getpid(), number)

    for at in (0, 1, 2, 4, 7, 10):
        left, directory = math.inf, tmp_path / f"run-{at}"
        with pytest.raises(KeyboardInterrupt):
            obtain_run(plan_run(config, directory), progress=progress)
        left = -math.inf  # no more signals
        assert verify_run(directory) == [], at
        obtain_run(plan_run(config, directory), resume=True)
        assert arrays_of(directory) == arrays_of(tmp_path / "whole"), at


def test_an_interruption_can_be_sent_between_processes() -> None:
    error = pickle.loads(pickle.dumps(Interrupted("stopped at 3", signal.SIGTERM)))
    assert (str(error), error.exit_code, error.number) == ("stopped at 3", 143, signal.SIGTERM)


def wait_for_ever() -> None:
    while True:
        pass


def test_handlers_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "PATIENCE_SECONDS", 0.001)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    with SignalWatch() as watch:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(GivenUp), watch.patience():
            wait_for_ever()
        with pytest.raises(GivenUp), watch.patience():  # too late to begin
            raise AssertionError
    assert watch.received == signal.SIGTERM
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_other_threads_watch_nothing() -> None:
    seen: list[Any] = []

    def watch() -> None:
        before = signal.getsignal(signal.SIGINT)
        with SignalWatch() as inside, inside.patience():
            seen.append((signal.getsignal(signal.SIGINT) is before, inside.received))

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()
    assert seen == [(True, None)]


def test_a_signal_in_the_last_moment_is_not_forgotten(tmp_path: Path) -> None:
    """What comes after the training, such as the drawing of a figure, must not begin."""

    def progress(reached: int, loss: float) -> None:
        if reached == 60:
            os.kill(os.getpid(), signal.SIGTERM)

    plan = plan_run(short("compiled"), tmp_path / "run")
    with pytest.raises(Interrupted, match="interrupted; the run in .* had come to its end") as stop:
        obtain_run(plan, progress=progress)
    assert stop.value.exit_code == 143
    assert load_run(tmp_path / "run").status == "complete"
    assert obtain_run(plan).reused
