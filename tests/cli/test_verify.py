from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure as Drawing

from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction import catalogue, reproduce
from dynamics_cli.reproduction.claims import Claim, at_most, claim
from dynamics_cli.reproduction.document import verify, verify_figure
from dynamics_cli.reproduction.figure import Figure, Runs
from tests.runs.damage import contents, damaged
from tests.runs.damage import flip as flipped


def small_evidence(runs: Runs) -> np.ndarray:
    return np.asarray(runs["first"].losses)


def small_claims(losses: np.ndarray) -> list[Claim]:
    return [
        claim("falls", "The loss falls", "here", expected=at_most(10.0), measured=float(losses[-1]))
    ]


def small_draw(losses: np.ndarray) -> Drawing:
    figure, (axes,) = new_figure()
    axes.plot(losses)
    return figure


@pytest.fixture
def small(place, monkeypatch):
    """A figure of one run of `toy.yaml`, with a table."""
    figure = Figure(
        id="small-fig1",
        title="Small",
        caption="A caption.",
        evidence=small_evidence,
        claims=small_claims,
        draw=small_draw,
        configs={"first": str(place / "toy.yaml")},
        table=lambda losses: (["loss"], [[f"{losses[-1]:.3f}"]]),
    )
    monkeypatch.setattr(reproduce, "load_figure", lambda figure_id: figure)
    monkeypatch.setattr(
        catalogue,
        "find",
        lambda id_: catalogue.FigureEntry("Small", 1.0, "", id=id_, paper="small"),
    )
    return figure.id


@pytest.fixture
def drawn(dyn, small, place):
    """The JSON of the figure."""
    assert dyn("reproduce", small, "--quiet").code == 0
    return place / "outputs/figures/small-fig1.json"


def flip(file: Path, position: int = -5) -> None:
    file.write_bytes(flipped(file.read_bytes(), position))


def test_runs(dyn, two):
    answer = dyn("verify", *two)
    assert (answer.code, answer.out) == (0, f"{two[0]}: intact\n{two[1]}: intact\n")
    flip(two[0] / "losses.npy")
    answer = dyn("verify", *two)
    assert answer.code == 7
    assert answer.err == "Error: 1 of 2 is damaged\n"
    assert answer.out.splitlines() == [
        f"{two[0]}: damaged",
        f"  {two[0]}/losses.npy: its rows do not fit their checksum",
        f"{two[1]}: intact",
    ]
    found = dyn("verify", *two, "--json")
    assert found.code == 7
    assert [run["intact"] for run in found.json] == [False, True]
    problem = {"file": str(two[0] / "losses.npy"), "problem": "its rows do not fit their checksum"}
    assert found.json[0]["findings"] == [problem]


@pytest.fixture
def old(two, tmp_path, monkeypatch):
    """The arrays of two runs, that were written an hour ago, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    arrays = sorted(array for run in two for array in run.rglob("*.npy"))
    for array in arrays:
        os.utime(array, (time.time() - 3600,) * 2)
    return arrays


def test_a_sample_reads_a_share_that_its_seed_chooses(dyn, two, old):
    sizes = {array: array.stat().st_size for array in old}
    found = {}
    for seed in range(40):
        reading = verify(*two, sample=0.3, seed=seed).reading
        assert (reading.arrays, reading.bytes) == (len(old), sum(sizes.values()))
        assert reading.bytes_read / reading.bytes >= 0.3
        assert reading.bytes_read - max(sizes.values()) < 0.3 * reading.bytes
        found[seed] = reading.bytes_read
    assert verify(*two, sample=0.3, seed=7).reading.bytes_read == found[7]
    assert len(set(found.values())) > 1
    assert verify(*two, sample=1.0).reading.read == len(old)
    answer = dyn("verify", *two, "--sample", "0.3", "--seed", 7)
    assert f"of {len(old)} arrays" in answer.err
    assert "(seed 7)" in answer.err
    flip(old[0])
    codes = {dyn("verify", *two, "--sample", "0.3", "--seed", seed).code for seed in range(20)}
    assert codes == {0, 7}  # rows that are not read are not known
    old[0].write_bytes(old[0].read_bytes()[:-8])
    assert dyn("verify", *two, "--sample", "0.001").code == 7  # a length is always known
    for wrong in (
        ["--sample", 0],
        ["--sample", 2],
        ["--seed", 1],
        ["--sample", 1, "--incremental"],
    ):
        assert dyn("verify", *two, *wrong).code == 2


def test_arrays_that_are_as_they_were_are_not_read_again(dyn, two, old, tmp_path):
    def read():
        reading = verify(*two, incremental=True).reading
        return [reading.read, reading.arrays]

    count = len(old)
    assert read() == [count, count]
    assert read() == [0, count]
    memories = list((tmp_path / "cache/dyn/verified").iterdir())
    assert len(memories) == 2
    assert f"read 0 of {count} arrays, 0.0% of" in dyn("verify", *two, "--incremental").err
    os.utime(old[0])
    assert read() == [1, count]
    assert read() == [1, count]  # it changed less than two seconds ago
    status = old[1].stat()
    flip(old[1])
    os.utime(old[1], ns=(status.st_atime_ns, status.st_mtime_ns))
    assert dyn("verify", *two, "--incremental").code == 0  # which the file system does not tell
    assert dyn("verify", *two).code == 7
    os.utime(old[1], (0, 0))
    for _ in range(2):
        assert dyn("verify", *two, "--incremental").code == 7  # damage is not remembered as intact
    flip(old[1])
    assert read() == [2, count]
    flip(memories[0], 40)
    assert read()[0] > 1  # a damaged memory is none
    memories[0].write_text("mine")
    answer = dyn("verify", *two, "--incremental")
    assert (answer.code, memories[0].read_text()) == (2, "mine")
    assert memories[0].name in answer.err


def test_a_cache_that_cannot_be_written_is_told(dyn, two, old, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    answer = dyn("verify", *two, "--incremental")
    assert answer.code == 0
    assert "note: nothing is remembered: cannot write" in answer.err


def test_a_figure(dyn, drawn):
    told = json.loads(drawn.read_text())
    assert (
        list(told["sha256"])
        == told["files"]
        == ["small-fig1.pdf", "small-fig1.png", "small-fig1.csv"]
    )
    (run,) = told["runs"]
    assert run["path"] == f"../runs/toy-{run['hash'][:10]}"
    answer = dyn("verify", drawn)
    assert (answer.code, answer.out) == (0, f"{drawn}: intact\n")
    directory = drawn.parent / run["path"]
    flip(directory / "losses.npy")
    answer = dyn("verify", drawn)
    assert answer.code == 7
    assert "losses.npy: its rows do not fit their checksum" in answer.out
    shutil.rmtree(directory)
    assert "this run of the figure is not there any more" in dyn("verify", drawn).out
    dyn("train", "toy.yaml", "--seed", 7, "--out", directory)
    assert (
        "it holds another run than the one that the figure was drawn from"
        in dyn("verify", drawn).out
    )
    assert dyn("reproduce", "small-fig1", "--quiet").code == 2  # which does not overwrite it


TOLD = {  # damage -> message about the JSON of a figure, about a picture or a table
    "a bit of the contents": ("it does not fit its checksum", "it is not what was written with"),
    "cut in half": ("it is not valid JSON", "it is not what was written with"),
    "empty": ("it is not valid JSON", "it is not what was written with"),
    "a byte more": ("it is not valid JSON", "it is not what was written with"),
    "deleted": ("it cannot be read", "it cannot be read"),
    "a directory": ("it cannot be read", "it cannot be read"),
    "a pipe": ("it cannot be read", "it cannot be read"),
}


@pytest.mark.parametrize("damage", TOLD)
def test_a_damaged_file_of_a_figure_is_told(drawn, damage):
    files = sorted(drawn.parent.glob("small*"))
    assert len(files) == 4
    for file in files:
        with damaged(file, damage, file):
            (found,) = verify_figure(drawn, lambda run: [])
            assert (found.file, TOLD[damage][file != drawn] in found.problem) == (file, True), found
    assert verify_figure(drawn) == []


def test_all(dyn, drawn, place):
    assert dyn("sweep", "toy.yaml", "--seeds", 2, "--quiet").code == 0
    (sweep,) = (place / "outputs/sweeps").iterdir()
    answer = dyn("verify", "--all")
    assert answer.code == 0
    assert [line.rsplit("/", 1)[-1] for line in answer.out.splitlines()] == [
        f"{json.loads(drawn.read_text())['runs'][0]['path'].rsplit('/', 1)[-1]}: intact",
        f"{sweep.name}: intact",
        "small-fig1.json: intact",
    ]
    data = (sweep / "sweep.json").read_bytes()
    flip(sweep / "sweep.json", 20)
    answer = dyn("verify", "--all")
    assert answer.code == 7
    assert answer.err == "Error: 1 of 3 is damaged\n"
    assert f"/{sweep.name}/sweep.json: it " in answer.out
    assert dyn("plot", sweep).code == 7  # no picture of it
    assert contents(sweep, "*.png", "*.pdf") == {}
    (sweep / "sweep.json").write_bytes(data)
    (below,) = sweep.glob("batches/*")
    flip(below / "losses.npy")
    assert f"  {below}/losses.npy: " in dyn("verify", sweep).out


def test_nothing_is_drawn_from_a_damaged_run(dyn, drawn, place):
    """Each file of the run in turn: all that reads it refuses, names the file, and leaves no new
    picture or table.

    The page of the figure, whose picture was drawn before, tells of the damage.
    """
    (run,) = (place / "outputs/runs").iterdir()
    before = contents(place, "*.png", "*.pdf")
    files = [file for file in run.rglob("*") if file.is_file() and not file.name.startswith(".")]
    drawn_from = [
        file for file in files if file.suffix != ".npz"
    ]  # no picture is made of a checkpoint
    assert len(drawn_from) == 2 + 5
    for file in drawn_from:
        data = file.read_bytes()
        flip(file, len(data) // 2)
        for command in (
            ["plot", run],
            ["show", run],
            ["show", run, "--json"],
            ["export", run, place / "run.csv"],
            ["reproduce", "small-fig1", "--quiet"],
        ):
            answer = dyn(*command)
            assert answer.code == 7, (file, command)
            assert file.with_suffix("").name in answer.err, (file, answer.err)
            assert "Traceback" not in answer.err
        answer = dyn("page", drawn, "-o", place / "page.html")
        assert (answer.code, answer.err.count("is damaged:")) == (0, 1)
        assert f"{file} is damaged:" in (place / "page.html").read_text()
        file.write_bytes(data)
        assert contents(place, "*.png", "*.pdf") == before, file
        assert not (place / "run.csv").exists()
    assert "damaged" not in dyn("page", drawn, "-o", place / "page.html").err
    assert dyn("reproduce", "small-fig1", "--quiet").code == 0
    flip(run / "losses.npy")
    assert "--force trains the run again" in dyn("reproduce", "small-fig1", "--quiet").err
    assert dyn("reproduce", "small-fig1", "--quiet", "--force").code == 0
    assert dyn("verify", "--all").code == 0
