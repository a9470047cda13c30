import json
import os
import shutil

import numpy as np
import pytest

from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction import catalogue, reproduce
from dynamics_cli.reproduction.claims import at_most, claim
from dynamics_cli.reproduction.document import verify_figure
from dynamics_cli.reproduction.figure import Figure
from tests.runs.damage import contents, damaged
from tests.runs.damage import flip as flipped


def small_evidence(runs):
    return np.asarray(runs["first"].losses)


def small_claims(losses):
    return [
        claim("falls", "The loss falls", "here", expected=at_most(10.0), measured=float(losses[-1]))
    ]


def small_draw(losses):
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


def flip(file, position=-5):
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


def test_damage_that_leaves_size_and_time_is_found_each_time(dyn, two):
    losses = two[0] / "losses.npy"
    before = losses.stat()
    assert dyn("verify", *two).code == 0
    flip(losses)
    os.utime(losses, ns=(before.st_atime_ns, before.st_mtime_ns))
    for _ in range(2):
        assert dyn("verify", *two).code == 7


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
