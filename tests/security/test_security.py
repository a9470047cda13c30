"""Files and settings of somebody else: nothing in them is run, nothing leaves its folder, nothing
fills the memory.

Each harmful file is first shown to do harm to a program that trusts it.
"""

import io
import json
import os
import pickle
import re
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import yaml

from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.reproduction.document import verify_figure
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store.checkpoints import load_checkpoint
from dynamics_cli.runs.store.sealed import seal
from tests.fuzz import arrays

from .conftest import CONFIG, dyn, tree

ROOT = Path(__file__).parents[2]


def objects(harm):
    """An array of one object that does harm when it is unpickled, as `.npy`."""
    array = np.empty((1, 1), dtype=object)
    array[0, 0] = harm
    return arrays.of(array, allow_pickle=True)


PICKLES = {
    "an array of objects": lambda harm: arrays.archive({"x.npy": objects(harm), "y.npy": arrays.Y}),
    "a pickle": pickle.dumps,
}


def naive(content):
    """Load whatever there is, as readers do that trust their files."""
    if content.startswith(b"PK"):
        with np.load(io.BytesIO(content), allow_pickle=True) as members:
            _ = [members[name] for name in members]
    else:
        np.load(io.BytesIO(content), allow_pickle=True)


@pytest.mark.parametrize("what", PICKLES)
def test_no_pickle_is_loaded(what, harm, place):
    content = PICKLES[what](harm)
    naive(content)
    assert harm.done
    (place / "data.npz").write_bytes(content)
    for section in ("dataset", "initialization"):
        result = dyn("train", "toy.yaml", "--set", f"{section}={{kind: file, path: data.npz}}")
        assert (result.exit_code, result.stdout) == (3, "")
    assert dyn("train", "toy.yaml", "--out", "run", "--quiet").exit_code == 0
    body = (
        content[:-2] + b"\x08\0"
    )  # of an archive, the length of the comment, which is the checksum
    (place / "run/checkpoint.npz").write_bytes(body + f"{zlib.crc32(body):08x}".encode())
    (place / "run/losses.npy").write_bytes(objects(harm))
    with pytest.raises(CorruptRunError, match="its contents are no checkpoint|compressed members"):
        load_checkpoint(place / "run", {"config_sha256": "0"})
    with pytest.raises(CorruptRunError, match="its header is not one that dyn writes"):
        _ = Run(place / "run").losses


def test_no_tag_of_a_config_calls_anything(harm, place):
    tag = f"!!python/object/apply:os.system ['touch {harm.path}']"
    text = CONFIG.replace("0.01", tag)
    yaml.load(text, Loader=yaml.UnsafeLoader)
    assert harm.done
    (place / "bad.yaml").write_text(text)
    setting = f"optimizer.lr={tag}"
    for command in (
        ["train", "bad.yaml"],
        ["config", "check", "bad.yaml"],
        ["train", "toy.yaml", "--set", setting],
        ["sweep", "toy.yaml", "--grid", setting],
    ):
        result = dyn(*command)
        assert result.exit_code in (2, 3), command
        assert "the YAML tag '!!python/object/" in result.stderr or command[0] == "sweep"


def test_a_few_lines_of_aliases_stand_for_no_gigabytes(place):
    lines = [
        "a0: &a0 [x]",
        *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)),
    ]
    (place / "bomb.yaml").write_text(CONFIG + "\n".join(lines))
    assert dyn("config", "check", "bomb.yaml").exit_code == 3


def test_a_bomb_is_not_unpacked(place, monkeypatch):
    content = arrays.bomb(64)
    assert len(content) < 200_000
    (place / "data.npz").write_bytes(content)
    monkeypatch.setattr(
        psutil, "virtual_memory", lambda: SimpleNamespace(available=32 * 2**20, total=2**30)
    )
    result = dyn("train", "toy.yaml", "--set", "dataset={kind: file, path: data.npz}")
    assert result.exit_code == 3
    assert "x takes 0.1 GiB of memory, this machine has 0.0 GiB" in result.stderr


NAMES = [
    "..",
    "../../x",
    "/x",
    "x/../../y",
    "~/x",
    "x\\..\\y",
    "C:\\x",
    "x\0y",
    "x\ny",
    " x",
    "",
    "-x",
    ".x",
    "$HOME",
    "`x`",
    "x;y",
    "*",
    "x" * 81,
    "\uff0e\uff0e/x",
    "\u202ex",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_the_name_of_a_run_stays_in_its_folder(name, place, tmp_path):
    """A naive program writes to `root / name`."""
    (place / "bad.yaml").write_text(CONFIG.replace("name: toy", f"name: {json.dumps(name)}"))
    before = tree(tmp_path)
    with pytest.raises(ConfigError, match="name: (must match pattern|must have at)"):
        load_config("bad.yaml")
    for command in (
        ["train", "bad.yaml"],
        ["train", "toy.yaml", "--set", f"name={json.dumps(name)}"],
    ):
        assert dyn(*command).exit_code == 3
    assert tree(tmp_path) == before


GOOD = {
    **{"figure": "x", "preset": "default", "overrides": [], "claims": []},
    **{"provenance": {"started": "", "versions": {}}, "files": [], "sha256": {}, "runs": []},
}
RUN = {"role": "x", "config": "x", "seed": 0, "path": ".", "hash": "0"}


@pytest.mark.parametrize(
    "change",
    [
        {"files": ["/dev/zero"], "sha256": {"/dev/zero": "0"}},
        {"files": ["../x"], "sha256": {"../x": "0"}},
        {"files": [".."], "sha256": {"..": "0"}},
        {"files": ["pipe"], "sha256": {"pipe": "0"}},
        {"files": ["link"], "sha256": {"link": "0"}},
        {"sha256": ["pipe"]},
        {"files": ["a\0"], "sha256": {"a\0": "0"}},
        {"runs": [RUN | {"path": None}]},
        {"runs": [RUN | {"hash": 1}]},
        {"runs": [RUN | {"path": 1}]},
        {"runs": [RUN | {"path": "a\0"}]},
        {"runs": ["."]},
        {"runs": {"path": "."}},
    ],
)
def test_the_json_of_a_figure_is_followed_nowhere(tmp_path, change):
    """Its checksum is right, and it names links, pipes, devices and places elsewhere."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "x.json").write_bytes(seal(GOOD))
    assert verify_figure(tmp_path / "x.json") == []
    (tmp_path / "x.json").write_bytes(seal(GOOD | change))
    assert verify_figure(tmp_path / "x.json")


def test_one_module_uses_the_network():
    uses = re.compile(
        r"^ *(?:from|import) (?:urllib\.request|http|requests|ftplib|httpx|pooch)\b", re.MULTILINE
    )
    modules = [*(ROOT / "dynamics_cli").rglob("*.py"), *(ROOT / "experiments").rglob("*.py")]
    assert [path.name for path in modules if uses.search(path.read_text(encoding="utf-8"))] == [
        "store.py"
    ]
