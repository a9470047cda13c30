"""No pickle is ever loaded, wherever one may hide."""

from __future__ import annotations

import io
import pickle
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from dynamics_cli.datasets.files.dogs_vs_cats import add_dogs_vs_cats, load_images
from dynamics_cli.datasets.files.mnist import read_subset
from dynamics_cli.datasets.points import File
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Streams
from dynamics_cli.runs import CorruptRunError, load_run
from dynamics_cli.runs.store.checkpoints import read_checkpoint, save_checkpoint
from tests.datasets.test_dogs_vs_cats import pets, zip_of
from tests.fuzz import arrays
from tests.runs.damage import reseal

from .conftest import Harm, dyn


def objects(harm: Harm) -> bytes:
    """An array of one object that does harm when it is unpickled, as `.npy`."""
    array = np.empty((1, 1), dtype=object)
    array[0, 0] = harm
    return arrays.of(array, allow_pickle=True)


def npz(path: Path, **members: bytes) -> None:
    path.write_bytes(arrays.archive({f"{name}.npy": content for name, content in members.items()}))


def saved_by_torch(harm: Harm) -> bytes:
    stream = io.BytesIO()
    torch.save({"w": harm}, stream)
    return stream.getvalue()


SAMPLES = {
    "an array of objects": lambda path, harm: npz(path, x=objects(harm), y=arrays.of(np.ones(1))),
    "labels of objects": lambda path, harm: npz(path, x=arrays.of(np.ones((1, 1))), y=objects(harm)),
    "a bare array of objects": lambda path, harm: path.write_bytes(objects(harm)),
    "a bare pickle": lambda path, harm: path.write_bytes(harm.pickled),
    "a pickle in an archive": lambda path, harm: npz(path, x=harm.pickled, y=harm.pickled),
    "what torch saved": lambda path, harm: path.write_bytes(saved_by_torch(harm)),
}


def naive(path: Path) -> None:
    """Load whatever there is, as readers do that trust their files."""
    content = path.read_bytes()
    if content.startswith(b"PK") and b"data.pkl" in content:
        torch.load(path, weights_only=False)
    elif content.startswith(b"PK"):
        with np.load(path, allow_pickle=True) as members:
            for name in members:
                if isinstance(value := members[name], bytes):
                    pickle.loads(value)
    else:
        np.load(path, allow_pickle=True)


@pytest.mark.parametrize("sample", SAMPLES)
def test_data_and_initial_weights(sample: str, harm: Harm, place: Path) -> None:
    path = place / "sample.npz"
    SAMPLES[sample](path, harm)
    naive(path)
    assert harm.done
    with pytest.raises(InputError, match="not a readable .npz file of plain arrays|no array 'x'"):
        File(path=str(path)).load(Streams(0))
    with pytest.raises(InputError, match="this MNIST subset is damaged"):
        read_subset("train", [0], path)
    (place / "weights.npz").write_bytes(path.read_bytes().replace(b"x.npy", b"hidden_weight.npy"))
    for setting in ("dataset={kind: file, path: sample.npz}", "initialization={kind: file, path: weights.npz}"):
        result = dyn("train", "toy.yaml", "--set", setting)
        assert (result.exit_code, result.stdout) == (3, "")
    assert not harm.done


@pytest.fixture
def run(place: Path) -> Path:
    assert dyn("train", "toy.yaml", "--out", "run", "--quiet").exit_code == 0
    return place / "run"


@pytest.mark.parametrize("name", ["losses", "loss_iterations", "trajectory/hidden_weight", "trajectory/iterations"])
def test_arrays_of_a_run(name: str, harm: Harm, run: Path) -> None:
    path = run / f"{name}.npy"
    path.write_bytes(objects(harm))
    naive(path)
    assert harm.done
    with pytest.raises(CorruptRunError, match="its header is not one that dyn writes|does not belong to the header"):
        _ = [*load_run(run).parameters.values(), load_run(run).losses, load_run(run).loss_iterations]
    for command in (["show", run], ["plot", run, "--panel", "loss"], ["compare", run, run], ["list", "runs"]):
        assert dyn(*command).exit_code in (0, 7)
    assert not harm.done


@pytest.mark.parametrize("sample", ["an array of objects", "a pickle in an archive", "what torch saved"])
def test_checkpoints(sample: str, harm: Harm, run: Path) -> None:
    """Even one whose checksum is right."""
    path = run / "checkpoint.npz"
    SAMPLES[sample](path, harm)
    naive(path)
    assert harm.done
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("meta.json", '{"meta": {"iteration": 3}, "rows": {}}')
    body = path.read_bytes()[:-2] + b"\x08\0"
    path.write_bytes(body + f"{zlib.crc32(body):08x}".encode())
    with pytest.raises(CorruptRunError, match="its contents are not those of a checkpoint|compressed members"):
        read_checkpoint(path)
    save_checkpoint(run, {"w": np.ones(2)}, {"iteration": 3}, {}, {})
    assert read_checkpoint(path).meta == {"iteration": 3}  # so it is the pickle that was refused
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        save_checkpoint(run, {"w": np.array([harm], dtype=object)}, {}, {}, {})


def test_resuming_from_a_pickle(harm: Harm, run: Path) -> None:
    reseal(run / "run.json", without=["rows", "iterations", "final_loss"], status="interrupted")
    for name in ("checkpoint.npz", "checkpoint-previous.npz"):
        (run / name).write_bytes(saved_by_torch(harm))
        naive(run / name)
        assert harm.done
    result = dyn("train", "toy.yaml", "--out", run, "--resume")
    assert result.exit_code == 7
    assert "checkpoint" in result.stderr


def test_the_cache_of_images(harm: Harm, place: Path) -> None:
    collection = add_dogs_vs_cats(zip_of(place / "train.zip", pets()))
    before = load_images(collection, 4).tolist()
    (cache,) = (place / "data").rglob("*.npz")
    npz(cache, images=objects(harm))
    naive(cache)
    assert harm.done
    assert load_images(collection, 4).tolist() == before  # decoded again
