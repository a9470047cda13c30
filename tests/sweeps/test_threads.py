"""Sweeps by threads, processes and Dask with two threads a worker: the bits of each job alone."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import dynamics_cli as dyn
from tests.cases import read

from ..conftest import kinds_of

CONFIGS = Path(__file__).parents[2] / "configs"
PARTS = """\
import numpy as np
import torch
from torch import nn
from dynamics_cli.kinds import Architecture, Dataset, Loss, make_samples

class Noisy(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x) if self.training else x

class Strange(Architecture, kind="strange"):
    '''A network of one's own that draws in training.'''
    def build(self, d):
        last = nn.Linear(5, 1), nn.Flatten(0)
        return nn.Sequential(nn.Linear(d, 5), Noisy(), nn.Dropout(0.3), *last)

class Seeded(Loss, kind="seeded"):
    '''A loss that seeds the generators of the process.'''
    def values(self, h, y):
        torch.manual_seed(3)
        return (h - y * torch.rand(1).to(h)) ** 2

class Cloud(Dataset, kind="cloud"):
    '''Samples of a generator of the process that it seeds itself.'''
    def load(self, streams):
        np.random.seed(7)
        return make_samples(np.random.standard_normal((6, 3)), np.random.standard_normal(6))
"""
GPT = """
name: threads
dtype: float64
dataset: {kind: modular_arithmetic, p: 5, train_fraction: 0.7, labels: classes}
architecture: {kind: gpt, tokens: 2, width: 8, heads: 2, dropout: 0.2, outputs: 5}
initialization: {kind: as_built}
loss: {kind: cross_entropy}
optimizer: {kind: adam, lr: 0.01, iterations: 6}
"""
OWN = """
name: threads
dtype: float64
dataset: {kind: cloud}
architecture: {kind: strange}
initialization: {kind: as_built}
loss: {kind: seeded}
optimizer: {kind: adam, lr: 0.01, iterations: 6}
"""
SHORT = ["optimizer.iterations=4"]
CASES = {
    "dropout": (read(GPT), []),
    "as_built": (read(GPT), ["architecture.dropout=0.0"]),
    "recurrent with dropout": (
        read(GPT),
        [
            "architecture={kind: recurrent, cell: gru, tokens: 2, width: 6, layers: 2,"
            " dropout: 0.3, outputs: 5}"
        ],
    ),
    "own kinds": (read(OWN), []),
}
BUNDLED = {
    "examples/gpt": ["optimizer.epochs=1"],
    "examples/series": ["optimizer.epochs=2"],
    "edelman2024/minimal": SHORT,
    "edelman2024/transformer": SHORT,
    "liu2023/landscape": SHORT,
    "rhee2026/muon": SHORT,
    "tachet2018/gan": SHORT,
    "tachet2018/light_digits": ["optimizer.epochs=1", "dataset.per_class=40"],
    "phuong2021/mnist": ["optimizer.epochs=1"],
    "woodworth2020/flow": [],
    "zhang2025/merged": SHORT,
    "zhang2025/separate": SHORT,
}
"""Bundled configs that torch trains and whose data are bundled too, shortened."""


@pytest.fixture(scope="module", autouse=True)
def parts(tmp_path_factory):
    with kinds_of(tmp_path_factory.mktemp("parts") / "strange_parts.py", PARTS) as file:
        yield file


@contextmanager
def dask(workers, threads):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=threads, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield {"executor": client.get_executor()}


@contextmanager
def threads():
    with ThreadPoolExecutor(4) as executor:
        yield {"executor": executor}


@contextmanager
def processes():
    yield {"workers": 2}


WAYS = {"threads": threads, "processes": processes, "Dask": lambda: dask(1, 2)}


def bits(run):
    """Return the bytes of all arrays that a run and a replica both have."""
    arrays = {"losses": run.losses, **run.parameters, **run.measures}
    return {name: array[:].tobytes() for name, array in arrays.items()}


def jobs(config, changes, out, way):
    grid = {"seed": [0, 1, 2, 3]}
    with way() as how:
        sweep = dyn.sweep(config, grid, overrides=changes, record="config", out=out, **how)
    assert sweep.counts()["complete"] == 4
    return [bits(dyn.load_run(f"{out}:{k}")) for k in range(4)]


def alone(config, changes, folder):
    runs = [
        dyn.train(config, [*changes, f"seed={seed}"], out=folder / str(seed)) for seed in range(4)
    ]
    return [bits(run) for run in runs]


@pytest.mark.parametrize("name", ["dropout", "own kinds"])
def test_jobs_in_threads_have_the_bits_of_each_alone(tmp_path, name):
    config, changes = CASES[name]
    expected = alone(config, changes, tmp_path)
    assert len({run["losses"] for run in expected}) == 4
    assert jobs(config, changes, tmp_path / "threads", threads) == expected


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*CASES, *BUNDLED])
def test_jobs_of_every_executor_have_the_bits_of_each_alone(tmp_path, name, way):
    config, changes = CASES.get(name) or (CONFIGS / f"{name}.yaml", BUNDLED[name])
    expected = alone(config, changes, tmp_path)
    assert jobs(config, changes, tmp_path / "jobs", WAYS[way]) == expected
