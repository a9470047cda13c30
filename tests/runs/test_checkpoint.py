from __future__ import annotations

import zipfile
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from dynamics_cli.runs import CorruptRunError
from dynamics_cli.runs.store.checkpoints import load_checkpoint, read_checkpoint, save_checkpoint

STATE = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "step": np.array(7), "m.0.weight": np.ones((0, 2))}
META = {"iteration": 7, "rng": 2**127 + 1, "lr": 0.1, "nan": None, "text": "ü"}


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path) is None
    save_checkpoint(tmp_path, STATE, META, {"losses": 3}, {"losses": 7})
    found = load_checkpoint(tmp_path)
    assert found is not None
    assert found.meta == META
    assert (found.rows, found.checksums) == ({"losses": 3}, {"losses": 7})
    assert found.damaged is None
    assert set(found.arrays) == set(STATE)
    for name, array in STATE.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


def test_numpy_reads_it_and_equal_states_give_equal_bytes(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        save_checkpoint(folder, STATE, META, {}, {})
    file = tmp_path / "a" / "checkpoint.npz"
    assert file.read_bytes() == (tmp_path / "b" / "checkpoint.npz").read_bytes()
    with np.load(file, allow_pickle=False) as loaded:
        np.testing.assert_array_equal(loaded["w"], STATE["w"])
    assert [p.name for p in file.parent.iterdir()] == ["checkpoint.npz"]


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path) -> None:
    for i in (1, 2, 3):
        save_checkpoint(tmp_path, {"w": np.array([i])}, {"i": i}, {"losses": i}, {"losses": 7})
    newest = load_checkpoint(tmp_path)
    assert newest is not None
    assert newest.meta == {"i": 3}
    (tmp_path / "checkpoint.npz").write_bytes(b"damaged")
    found = load_checkpoint(tmp_path)
    assert found is not None
    assert (found.meta, found.rows, found.damaged) == ({"i": 2}, {"losses": 2}, tmp_path / "checkpoint.npz")
    (tmp_path / "checkpoint.npz").unlink()
    found = load_checkpoint(tmp_path)
    assert found is not None
    assert (found.meta, found.damaged) == ({"i": 2}, None)


@pytest.mark.parametrize(
    ("kind", "problem"), [(zipfile.ZIP_DEFLATED, "compressed members"), (zipfile.ZIP_STORED, "contents are not those")]
)
def test_other_archives_are_refused(tmp_path: Path, kind: int, problem: str) -> None:
    """A bomb, and arrays without a description; objects: tests/security/test_security.py."""
    file = tmp_path / "checkpoint.npz"
    with zipfile.ZipFile(file, "w", kind) as archive:
        with archive.open("w.npy", "w") as member:
            np.lib.format.write_array(member, np.zeros(10**6))
        archive.comment = b"0" * 8
    data = file.read_bytes()[:-8]
    file.write_bytes(data + f"{crc32(data):08x}".encode())
    with pytest.raises(CorruptRunError, match=problem):
        read_checkpoint(file)
