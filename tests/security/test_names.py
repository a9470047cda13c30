"""Names: what is written stays where it belongs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.config import ConfigError, load_config, run_directory_name
from dynamics_cli.errors import DynError, InputError
from dynamics_cli.runs import runs_root
from dynamics_cli.sweeps.directory import table_seals
from tests.runs.damage import reseal

from .conftest import CONFIG, dyn, tree

NAMES = [
    "..", ".", "../x", "../../x", "/x", "//x", "x/../../y", "x/y", "./x", "~", "~/x", "x\\..\\..\\y",
    "\\\\host\\share", "C:x", "C:\\x", "x:y", "x\0y", "x\n", "\nx", "x\ny", " x", "x ", "", "-x", ".x", "$HOME",
    "`x`", "x;y", "x|y", "*", "?", "x" * 81, "x" * 5000, "\u2025", "\uff0e\uff0e/x", "\u202ex", "\xe9", "e\u0301",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_of_runs(name: str, place: Path, tmp_path: Path) -> None:
    """A naive program writes to `root / name`."""
    data = load_config("toy.yaml").model_dump()
    with pytest.raises(ConfigError, match="name: must be a text of 1 to 80 characters that matches"):
        load_config({**data, "name": name})
    before = tree(tmp_path)
    (place / "bad.yaml").write_text(CONFIG.replace("name: toy", f"name: {json.dumps(name)}"))
    for command in (["train", "bad.yaml"], ["train", "toy.yaml", "--set", f"name={json.dumps(name)}"]):
        for more in ([], ["--dry-run"], ["--replicas", "2"]):
            assert dyn(*command, *more).exit_code == 3
    assert dyn("sweep", "bad.yaml", "--grid", "seed=0,1").exit_code == 3
    assert tree(tmp_path) == before | {"place/bad.yaml"}


def test_some_of_these_names_escape_when_nobody_looks() -> None:
    root = Path("/outputs/runs")
    escaping = [
        name for name in NAMES if "\0" not in name and root not in (root / f"{name}-0123456789").resolve().parents
    ]
    assert len(escaping) >= 4


@pytest.mark.parametrize("name", ["toy", "a..b", "x-1.2_3", "A" * 80, "1e5", "null", "con"])
def test_good_names_make_one_folder(name: str, place: Path) -> None:
    config = load_config("toy.yaml", [f"name='{name}'"])
    assert (runs_root() / run_directory_name(config, "0" * 64)).parent == runs_root()
    if len(name) < 20:
        assert dyn("train", "toy.yaml", "--set", f"name='{name}'", "--quiet").exit_code == 0
        (found,) = runs_root().iterdir()
        assert found.name.startswith(f"{name}-")


@pytest.mark.parametrize(
    ("out", "code", "told"),
    [
        ("x\0y", 2, "a name cannot hold a null character"),
        ("x" * 5000, 7, "cannot be made (File name too long)"),
        ("toy.yaml", 2, "toy.yaml is a file, not a directory"),
        ("toy.yaml/x", 7, "cannot be made (Not a directory)"),
        ("loop/x", 7, "cannot be made"),
    ],
)
def test_places_that_cannot_be(out: str, code: int, told: str, place: Path) -> None:
    (place / "loop").symlink_to("loop")
    for command in (["train", "toy.yaml"], ["train", "toy.yaml", "--replicas", "2"]):
        result = dyn(*command, "--out", out)
        assert result.exit_code in ((code,) if len(command) == 2 else (2, 7)), command
        assert "Traceback" not in result.stderr
    assert told in dyn("train", "toy.yaml", "--out", out).stderr


def test_a_place_that_the_user_names_is_taken_as_it_is(place: Path, tmp_path: Path) -> None:
    """`--out` is where the user wants it, above the working directory too; nothing is written elsewhere."""
    before = tree(tmp_path)
    assert dyn("train", "toy.yaml", "--out", "../elsewhere", "--quiet").exit_code == 0
    assert {name.split("/")[0] for name in tree(tmp_path) - before} == {"elsewhere"}
    assert dyn("train", "toy.yaml", "--out", "a\\..\\b", "--quiet").exit_code == 0
    assert (place / "a\\..\\b" / "run.json").is_file()  # one folder of an odd name


def test_pictures_are_named_after_panels_and_measures(place: Path, tmp_path: Path) -> None:
    assert dyn("train", "toy.yaml", "--out", "run", "--quiet").exit_code == 0
    assert dyn("plot", "run", "--panel", "../../x").exit_code == 2
    assert dyn("sweep", "toy.yaml", "--grid", "seed=0,1", "--out", "sweep", "--quiet").exit_code == 0
    table, described = place / "sweep" / "results.csv", place / "sweep" / "sweep.json"
    lines = table.read_text().splitlines()
    table.write_text("".join(f"{line},{new}\n" for line, new in zip(lines, ["../../../x", "1", "2"], strict=True)))
    reseal(described, **table_seals(place / "sweep"))
    before = tree(tmp_path)
    result = dyn("plot", "sweep", "--panel", "spread", "--measure", "../../../x")
    assert result.exit_code == 2
    assert "no measure '../../../x' here" in result.stderr
    assert tree(tmp_path) == before


def test_names_with_odd_endings_and_nothing_in_them(tmp_path: Path) -> None:
    from dynamics_cli.datasets.files.tables import read_samples

    np.savez(tmp_path / "x.npz", x=np.zeros((2, 1)), y=np.ones(2))
    (tmp_path / "x.npz").rename(tmp_path / "X.NPZ")
    assert len(read_samples(tmp_path / "X.NPZ")["x"]) == 2
    (tmp_path / "open.csv").write_text('"1,2\n3,4\n')
    with pytest.raises(InputError, match=r"open\.csv: not a table of numbers"):
        read_samples(tmp_path / "open.csv")
    (tmp_path / "a.yaml").write_text('extends: "\\0"\n')
    with pytest.raises(DynError) as told:
        load_config(tmp_path / "a.yaml")
    assert "extends" in str(told.value)
    assert "\0" not in str(told.value)
