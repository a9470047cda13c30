"""Settings of the process: no run depends on what the user has set, and threads leave it alone."""

import os
import random
import signal
import subprocess
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import torch
from numpy.testing import assert_equal
from threadpoolctl import threadpool_limits
from torch import nn

import dynamics_cli as dyn
from dynamics_cli import process
from dynamics_cli.process import (
    ONE_THREAD,
    THREADS,
    Shared,
    plain_process,
    threads_for,
)
from dynamics_cli.training.signals import Interrupted
from tests.cases import read

from .sweeps.test_threads import bits

CONFIG = read("""
name: settings
dataset: {kind: sparse_parity, n: 20, dim: 4, k: 2}
architecture: {kind: recurrent, cell: gru, tokens: 4, width: 6, layers: 2, dropout: 0.2}
initialization: {kind: as_built}
loss: {kind: mse}
optimizer: {kind: adam, lr: 0.01, iterations: 6}
record: {measures: [train_loss, gradient_norm, sharpness]}
""")


@contextmanager
def default_device():
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


def setting(write, value, former):
    @contextmanager
    def changed():
        write(value)
        try:
            yield
        finally:
            write(former)

    return changed


SETTINGS = {
    "default dtype": setting(torch.set_default_dtype, torch.float64, torch.float32),
    "default device": default_device,
    "deterministic algorithms": setting(torch.use_deterministic_algorithms, True, False),
    "matmul precision": setting(torch.set_float32_matmul_precision, "medium", "highest"),
    "no gradients": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "anomaly": torch.autograd.detect_anomaly,
    "attention written out": setting(torch.backends.cuda.enable_flash_sdp, False, True),
    "no oneDNN": setting(partial(setattr, torch.backends.mkldnn, "enabled"), False, True),
}
TOGETHER = "all but one at once"
ALONE = "inference mode"
"""Whoever leaves it computes gradients too, so that beside it "no gradients" is not seen."""
NAMES = [
    TOGETHER,
    ALONE,
    *(pytest.param(name, marks=pytest.mark.long) for name in SETTINGS if name != ALONE),
]


@contextmanager
def changed(name):
    """Set what the user may have set."""
    with ExitStack() as stack:
        for one, setting_of_one in SETTINGS.items():
            if one == name or (name == TOGETHER and one != ALONE):
                stack.enter_context(setting_of_one())
        yield


def state():
    """Return what `SETTINGS` change."""
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.is_anomaly_enabled(),
        torch.backends.cuda.flash_sdp_enabled(),
        torch.backends.mkldnn.enabled,
    )


def trained(out):
    run = dyn.train(CONFIG, out=out)
    return run.hash, bits(run)


def swept(out):
    dyn.sweep(CONFIG, {"seed": [0, 1]}, record="config", out=out)
    return [bits(dyn.load_run(f"{out}:{k}")) for k in range(2)]


def looked_at(out):
    run = dyn.load_run(out)
    return run.network(-1)(run.dataset().x).tobytes()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    run, sweep = trained(folder / "run"), swept(folder / "sweep")
    return run, sweep, looked_at(folder / "run"), folder / "run"


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", NAMES)
def test_no_run_depends_on_a_setting_of_the_user(tmp_path, name, plain):
    run, sweep, outputs, directory = plain
    with changed(name):
        before = state()
        assert trained(tmp_path / "run") == run
        assert swept(tmp_path / "sweep") == sweep
        assert looked_at(directory) == outputs
        assert state() == before


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", NAMES)
def test_resumption_does_not_depend_on_a_setting_of_the_user(tmp_path, name, plain):
    """Interrupted in the plain process, continued under the setting."""
    (_, expected), *_ = plain
    stops = []

    def stop(iteration, loss):
        if iteration >= 3 and not stops:
            stops.append(iteration)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        dyn.train(CONFIG, out=tmp_path / "run", progress=stop)
    with changed(name):
        run = dyn.train(CONFIG, out=tmp_path / "run", resume=True)
    assert (stops[0] < 6, bits(run)) == (True, expected)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", NAMES)
def test_no_measure_depends_on_a_setting_of_the_user(tmp_path, name):
    """The model computes as in the user's loop, which is of the default dtype and device."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1), nn.Flatten(0))
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((8, 3)), rng.standard_normal(8)
    measures = ["train_loss", "gradient_norm", "sharpness", "hessian_trace", "kernel_alignment"]
    given = {"loss": "mse", "measures": measures}

    def both(place):
        table = dyn.measure(model, x, y, **given)
        with dyn.Recorder(tmp_path / place, model, x, y, **given):
            pass
        return table, bits(dyn.load_run(tmp_path / place))

    expected = both("plain")
    with changed(name):
        before = state()
        assert both("set") == expected
        assert state() == before


# -- four threads


def in_four_threads(work):
    """Call in four threads at once, several times each."""
    ready = threading.Barrier(4)

    def called(k):
        ready.wait()
        return [work(3 * k + turn) for turn in range(3)]

    with ThreadPoolExecutor(4) as pool:
        return [one for some in pool.map(called, range(4)) for one in some]


def process_state():
    return (
        state(),
        torch.get_rng_state().numpy().tobytes(),
        str(np.random.get_state()),  # noqa: NPY002
        random.getstate(),
        torch.get_num_threads(),
        torch.backends.cudnn.deterministic,
        dict(mpl.rcParams),
        list(warnings.filters),
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        dict(os.environ),
        Path.cwd(),
        np.geterr(),
    )


@pytest.fixture(scope="module")
def run(plain):
    return dyn.load_run(plain[-1])


def _training(run, folder):
    expected = bits(run)
    return lambda k: bits(dyn.train(CONFIG, out=folder / str(k))) == expected


def _drawing(run, folder):
    def picture(name):
        dyn.plot(run, "loss", out=folder / name)
        return [path.read_bytes() for path in sorted((folder / name).iterdir())]

    expected = picture("plain")
    assert expected
    return lambda k: picture(f"{k}") == expected


def _verifying(run, folder):
    expected = repr(dyn.verify(run.path))
    return lambda k: repr(dyn.verify(run.path)) == expected


def _measuring(run, folder):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1), nn.Flatten(0))
    x, y = np.ones((4, 3)), np.ones(4)
    expected = dyn.measure(model, x, y, loss="mse")
    return lambda k: dyn.measure(model, x, y, loss="mse") == expected


def _forward(run, folder):
    """Measure by forward derivatives, whose levels torch counts for all threads together."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    x, y = np.eye(3).repeat(4, 0), np.arange(12) % 2
    given = {"loss": "cross_entropy", "measures": ["gauss_newton"]}
    expected = dyn.measure(model, x, y, **given)
    return lambda k: dyn.measure(model, x, y, **given) == expected


def _threads(run, folder):
    def work(k):
        with threads_for(None), threads_for(1), plain_process():
            inner = torch.get_num_threads()
        return inner == 1

    return work


@pytest.mark.parametrize("work", [_training, _drawing, _verifying, _measuring, _forward, _threads])
def test_four_threads_leave_the_process_as_it_is(tmp_path, run, work):
    one = work(run, tmp_path)
    one(100)
    before = process_state()
    assert all(in_four_threads(one))
    assert process_state() == before


def _large(**settings):
    """Return a config of a network of 11 000 weights, of which BLAS takes sums on two threads."""
    network = {"kind": "fully_connected", "widths": [100], "activation": "tanh", "outputs": 1}
    return {
        "name": "large",
        "dataset": {
            "kind": "linear_map",
            "n": 8,
            "inputs": 110,
            "outputs": 1,
            "singular_values": [1.0],
        },
        "architecture": network,
        "initialization": {"kind": "default_scaled"},
        "loss": {"kind": "mse"},
        "optimizer": {"kind": "gd", "lr": 0.1, "iterations": 2},
        **settings,
    }


def _measured(way, folder):
    norms = ["weight_norm", "gradient_norm"]
    measures = [*norms, "sharpness", "gauss_newton", {"kind": "hessian_trace", "probes": 1}]
    if way != "a network":
        settings = {"record": {"measures": measures}}
        return dyn.train(_large(**settings), out=folder, backend=way).measures
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(110, 100), nn.Tanh(), nn.Linear(100, 1))
    x, y = np.eye(8, 110), np.ones((8, 1))
    return dyn.measure(model, x, y, loss="mse", measures=measures).arrays


@pytest.mark.parametrize("way", ["compiled", "torch", "a network"])
def test_measures_have_the_same_bits_for_any_number_of_threads_of_blas(way, tmp_path):
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            measures = _measured(way, tmp_path / str(threads))
        found.append({name: np.asarray(values) for name, values in measures.items()})
    assert len(found[0]) >= 5
    assert_equal(*found)


def test_what_threads_share_is_set_once_and_put_back_by_the_last():
    seen = []

    @contextmanager
    def noted():
        seen.append("set")
        yield len(seen)
        seen.append("back")

    shared = Shared(noted)
    with ExitStack() as first, ExitStack() as second:
        assert first.enter_context(shared.held()) == 1
        assert second.enter_context(shared.held()) == 1
        first.close()
        assert seen == ["set"]
    assert seen == ["set", "back"]


def test_a_loop_of_ones_own_keeps_its_random_numbers_beside_dyn(tmp_path):
    """Measures, and training with dropout, in a thread take no draw from it, and give none back."""
    torch.manual_seed(1)
    expected = torch.rand(100_000)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1), nn.Flatten(0))
    torch.manual_seed(1)
    x, y = torch.ones(4, 3), torch.ones(4)
    ended = threading.Event()

    def beside():
        try:
            dyn.train(CONFIG, out=tmp_path / "run")
            for _ in range(5):
                dyn.measure(model, x, y, loss="mse", measures=["train_loss"])
            with dyn.Recorder(tmp_path / "own", model, x, y, loss="mse", every=1) as recorder:
                for _ in range(3):
                    recorder.step()
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(beside)
        drawn = []
        while not ended.is_set():
            drawn.append(torch.rand(1))
        work.result()
    drawn = torch.cat(drawn)[: len(expected)]
    assert len(drawn) > 10
    assert torch.equal(drawn, expected[: len(drawn)])


@pytest.mark.parametrize("told", ["3", ""])
def test_convolutions_have_the_threads_of_a_process_that_trains_alone(monkeypatch, told):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv(THREADS, told)
    asked = []

    def ask(*command, env, ask=subprocess.check_output, **options):
        assert not env.keys() & ONE_THREAD.keys()
        asked.append(ask(*command, env=env, **options))
        return asked[0]

    monkeypatch.setattr(subprocess, "check_output", ask)
    process._threads_alone.cache_clear()
    former = torch.get_num_threads()
    with threads_for(2**20):
        assert torch.get_num_threads() == 1
        with threads_for(None):
            assert torch.get_num_threads() == int(told or asked[0])
    assert torch.get_num_threads() == former


def test_cores_are_those_that_are_granted(monkeypatch, tmp_path):
    """By affinity, Slurm, and control groups of both versions, the groups around included."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(32), raising=False)
    monkeypatch.setattr(process, "_quotas", lambda system, quotas=process._quotas: quotas(tmp_path))
    asked = process.cores.__wrapped__
    assert asked() == 32
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(
        "3:cpu,cpuacct:/job\n1:memory:/other\n0::/slice/job\n"
    )
    groups = tmp_path / "sys/fs/cgroup"
    for folder, files in {
        "cpu/job": {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"},
        "slice/job": {"cpu.max": "max 100000"},
        "slice": {"cpu.max": "350000 100000"},
    }.items():
        (groups / folder).mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (groups / folder / file).write_text(f"{text}\n")
    assert asked() == 4
    (groups / "cpu/job/cpu.cfs_quota_us").write_text("300000\n")
    assert asked() == 3
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "2")
    assert asked() == 2
