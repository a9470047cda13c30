"""No command removes or overwrites a file that `dyn` did not write, whatever its options.

Each command is run once in an empty folder, and once more for every file that it wrote there: with
somebody else's file, or a link to one, under that name. By default of the arrays of a folder, which
are written alike, only the first.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.runs.damage import contents

MINE = b"mine: nobody writes this but me\n"
SETTINGS = ["--set", "optimizer.iterations=4", "-q"]
PAPER = ["--with", "mine2026"]
COMMANDS = {
    "train": (["train", "toy.yaml", "--out", "out", *SETTINGS], "--force"),
    "train by name": (["train", "toy.yaml", *SETTINGS], "--force"),
    "sweep": (["sweep", "toy.yaml", "--grid", "seed=0,1", "--out", "out", *SETTINGS], ""),
    "reproduce": ([*PAPER, "reproduce", "mine2026-fig1", "--out", "out", "-q"], "--force"),
    "reproduce seeds": ([*PAPER, "reproduce", "mine2026-fig1", "--seeds", "4", "-q"], ""),
    "audit": ([*PAPER, "audit", "mine2026-fig1", "--null", "untrained", "--out", "out", "-q"], ""),
    "plot": (["plot", "kept", "--panel", "loss", "--format", "png", "--format", "svg"], ""),
    "plot out": (["plot", "kept", "--panel", "loss", "--theory", "--out", "out"], ""),
    "plot animate": (["plot", "kept", "--animate", "--out", "out", "-q"], ""),
    "page": (["page", "kept", "-q"], ""),
    "export": (["export", "kept", "table.csv"], ""),
    "new kind": (["new", "kind", "optimizer", "mine"], ""),
    "new paper": (["new", "paper", "other2026"], ""),
}
"""Name -> the command, and the option that lets it begin again."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tmp_path_factory.mktemp("decoys") / "place"


def plant_file(decoy: Path, outside: Path) -> None:
    decoy.write_bytes(MINE)


def plant_link(decoy: Path, outside: Path) -> None:
    outside.write_bytes(MINE)
    decoy.symlink_to(outside)


@pytest.fixture
def base(made, place, dyn, monkeypatch, kinds_as_before):
    """A folder with a config, a paper and a finished run, made once."""
    if not made.exists():
        shutil.copytree(place, made)
        monkeypatch.chdir(made)
        assert dyn("train", "toy.yaml", "--out", "kept", *SETTINGS).code == 0
        assert dyn("new", "paper", "mine2026").code == 0
        for name in ("reproduce", "audit"):
            assert dyn(*arguments_of(name, made), "--out", "first").code == 0
    return made


def arguments_of(command: str, base: Path) -> list[str]:
    return [str(base / "mine2026") if word == "mine2026" else word for word in COMMANDS[command][0]]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_removes_or_overwrites_what_dyn_did_not_write(
    command, every, base, tmp_path, dyn, monkeypatch
):
    arguments = arguments_of(command, base)
    again = COMMANDS[command][1]
    fresh = shutil.copytree(base, tmp_path / "fresh")
    before = contents(fresh)
    monkeypatch.chdir(fresh)
    assert dyn(*arguments).code == 0
    after = contents(fresh)
    written = sorted(after.keys() - before.keys())
    assert written
    assert before.items() <= after.items()
    if command != "export" and not command.startswith("new"):
        assert dyn(*arguments).code == 0, "the files of dyn are replaced"
    if not every:
        alike = {(Path(name).parent, Path(name).suffix == ".npy" or name): name for name in written}
        written = list(alike.values())
    for k, name in enumerate(written):
        for plant in (plant_file, plant_link):
            there = shutil.copytree(base, tmp_path / f"{plant.__name__}-{k}")
            decoy = there / name
            decoy.parent.mkdir(parents=True, exist_ok=True)
            plant(decoy, there / "outside")
            before = contents(there)
            monkeypatch.chdir(there)
            for options in ([], [again]) if again else ([],):
                answer = dyn(*arguments, *options)
                after = contents(there)
                assert before.items() <= after.items(), (name, options)
                if name.startswith("out/batches/") and answer.code == 0:
                    continue  # the jobs of a batch whose folder is refused are trained alone
                assert answer.code in (2, 6, 7), (name, answer)
                told = answer.err.splitlines()[-1]
                assert told.startswith("Error: "), answer
                assert Path(name).name in told, answer
