import numpy as np
import pytest

from dynamics_cli.config import RunConfig
from dynamics_cli.runs.writer import RunWriter
from tests.cases import TWO_POINTS, read
from tests.runs.faults import Faults

LAST = 12  # iterations of the toy run
SNAPSHOTS = (0, 1, 2, 4, 7, 12)
CHUNK = 3  # iterations whose losses are appended at once, followed by a checkpoint


@pytest.fixture
def faults(monkeypatch):
    return Faults(monkeypatch)


@pytest.fixture
def config():
    sections = f"""
    architecture: {{kind: two_layer, width: 4}}
    optimizer: {{kind: gd, lr: 0.01, iterations: {LAST}}}
    """
    return RunConfig.model_validate(read(sections, TWO_POINTS))


def append_snapshot(
    writer,
    i,
    parameters,
    measures=None,
):
    """Record one state."""
    numbers = {name: np.asarray([value], np.float64) for name, value in (measures or {}).items()}
    writer.append_snapshots([i], {name: array[None] for name, array in parameters.items()}, numbers)


class Toy:
    """A deterministic stand-in for training, written as the training loop is."""

    last = LAST
    snapshots = SNAPSHOTS
    chunk = CHUNK

    @staticmethod
    def weights(i):
        return (np.arange(8, dtype=np.float32).reshape(4, 2) + 1) * np.float32(np.sin(i + 1))

    @classmethod
    def loss(cls, i):
        return float(np.square(cls.weights(i).astype(np.float64)).sum())

    @classmethod
    def snapshot(cls, writer, i):
        weights = cls.weights(i)
        append_snapshot(
            writer,
            i,
            {"hidden_weight": weights, "output_weight": weights[:, 0]},
            {"norm": cls.loss(i)},
        )

    @classmethod
    def train(cls, directory, config, resume=False, stop=None):
        writer = (
            RunWriter.reopen(directory)
            if resume
            else RunWriter.create(directory, config, {"hash": "abc"})
        )
        i = writer.resumed_at
        if not writer.resumed:
            cls.snapshot(writer, 0)
        while i < cls.last:
            if stop is not None and i >= stop:
                writer.checkpoint({"w": cls.weights(i)}, {"iteration": i})
                writer.finish("interrupted", iterations=i, final_loss=cls.loss(i), seconds=0.5)
                return
            steps = range(i, min(i + cls.chunk, cls.last))
            writer.append_losses(list(steps), [cls.loss(k) for k in steps])
            for k in steps:
                i = k + 1
                if i in cls.snapshots:
                    cls.snapshot(writer, i)
            writer.checkpoint({"w": cls.weights(i)}, {"iteration": i})
        writer.append_losses([i], [cls.loss(i)])
        writer.finish("complete", iterations=i, final_loss=cls.loss(i), seconds=1.0)


@pytest.fixture
def toy():
    return Toy


@pytest.fixture
def finished(tmp_path, config):
    """A complete run."""
    directory = tmp_path / "toy-run"
    Toy.train(directory, config)
    return directory


@pytest.fixture
def unfinished(tmp_path, config):
    """A run killed after two checkpoints, in the middle of a snapshot."""
    directory = tmp_path / "toy-killed"
    writer = RunWriter.create(directory, config, {"hash": "abc"})
    Toy.snapshot(writer, 0)
    for i in (3, 6):
        writer.append_losses([i - 3, i - 2, i - 1], [Toy.loss(k) for k in (i - 3, i - 2, i - 1)])
        Toy.snapshot(writer, i)
        writer.checkpoint({"w": Toy.weights(i)}, {"iteration": i})
    writer.append_losses([6, 7], [Toy.loss(6), Toy.loss(7)])
    writer.arrays["trajectory/hidden_weight"].append(Toy.weights(7)[None])
    return directory
