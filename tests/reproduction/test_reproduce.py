"""From a figure's id to its files, with a small figure of our own and real training."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from matplotlib.figure import Figure as Drawing
from threadpoolctl import threadpool_info

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction import reproduce as module
from dynamics_cli.reproduction.claims import Claim, at_most, claim
from dynamics_cli.reproduction.document import read_document, seeds_of, verify_figure
from dynamics_cli.reproduction.figure import Figure, Runs, Variant, Wanted
from dynamics_cli.reproduction.reproduce import FigureResult, reproduce, reproduce_figures
from dynamics_cli.runs.run import Run
from dynamics_cli.training.many import train

CONFIG = """\
name: small
seed: 5
dataset: {kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], append_bias: true}
architecture: {kind: two_layer, width: 8}
initialization: {kind: balanced, scale: 0.5}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.01, iterations: 50}
"""


def small_claims(losses: dict[str, float]) -> list[Claim]:
    return [
        claim("falls", "The loss falls", "here", expected=at_most(10.0), measured=losses["first"]),
        claim(
            "second", "So does the other", "here", expected=at_most(10.0), measured=losses["second"]
        ),
    ]


def small_draw(losses: dict[str, float]) -> Drawing:
    figure, (axes,) = new_figure()
    axes.plot(list(losses.values()))
    return figure


def small_evidence(runs: Runs) -> dict[str, float]:
    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert set(threads) == {1}  # sums do not depend on the number of cores
    return {role: run.final_loss for role, run in runs.items()}


QUICK = {"formats": ("svg",)}
drawn = functools.partial(reproduce, **QUICK)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Make `reproduce` know one figure, `small-fig1`, with two runs of one config."""
    config = tmp_path / "small.yaml"
    config.write_text(CONFIG)

    def make(**changes):
        fields = {
            "id": "small-fig1",
            "title": "Small",
            "caption": "A caption.",
            "evidence": small_evidence,
            "claims": small_claims,
            "draw": small_draw,
            "configs": {
                "first": str(config),
                "second": Wanted(str(config), ("optimizer.iterations=20",)),
            },
        }
        figure = Figure(**(fields | changes))
        monkeypatch.setattr(module, "load_figure", lambda figure_id: figure)
        return figure

    make()
    return make


@pytest.mark.usefixtures("small")
def test_files_and_json(outputs):
    result = reproduce("small-fig1")
    folder = (outputs / "figures").absolute()
    assert result.files == [folder / f"small-fig1.{end}" for end in ("pdf", "png", "json")]
    assert all(path.stat().st_size > 0 for path in result.files)
    assert sorted(path.name for path in folder.glob("[!.]*")) == sorted(
        path.name for path in result.files
    )
    told = json.loads(result.files[-1].read_text())
    assert {
        key: told[key] for key in ("figure", "paper", "title", "caption", "preset", "overrides")
    } == {
        "figure": "small-fig1",
        "paper": "small",
        "title": "Small",
        "caption": "A caption.",
        "preset": "default",
        "overrides": [],
    }
    assert [one["id"] for one in told["claims"]] == ["falls", "second"]
    assert set(told["claims"][0]) == Claim.model_fields.keys() - {
        "note",
        "because",
    }
    assert told["provenance"]["versions"]["dyn"]
    first, second = told["runs"]
    assert (first["role"], first["seed"]) == ("first", 5)
    assert [(one["role"], one["reused"]) for one in told["provenance"]["obtained"]] == [
        ("first", False),
        ("second", False),
    ]
    assert second["overrides"] == ["optimizer.iterations=20"]
    assert len(first["hash"]) == len(second["hash"]) == 64
    assert first["hash"] != second["hash"]
    assert (
        Run(folder / first["path"]).hash == first["hash"]
    )  # relative: both are below the root of outputs
    assert result.reproduced


@pytest.mark.parametrize("part", ["evidence", "claims", "draw"])
def test_runs_that_a_figure_did_not_foresee_are_one_line_and_our_own_a_bug(part, small):
    def fails(_):
        return 1 / 0

    small(**{part: fails})
    with pytest.raises(ZeroDivisionError):
        [*reproduce_figures(["small-fig1"], **QUICK)]
    told = "the figure's code fails: ZeroDivisionError: division by zero"
    for _, error in reproduce_figures(["small-fig1", "small-fig1"], **QUICK):
        assert re.fullmatch(told, str(error))
    ((_, error),) = reproduce_figures(["small-fig1"], **QUICK, overrides=["optimizer.lr=0.1"])
    assert re.fullmatch(rf"{told} \(the runs have --set optimizer.lr=0.1\)", str(error))


@pytest.mark.usefixtures("small")
def test_runs_are_reused_and_force_trains_again():
    first = reproduce("small-fig1")
    second = reproduce("small-fig1")
    assert [run.reused for run in first.runs] == [False, False]
    assert [run.reused for run in second.runs] == [True, True]
    assert first.files[1].read_bytes() == second.files[1].read_bytes()
    again = reproduce("small-fig1", force=True)
    assert [run.reused for run in again.runs] == [False, False]
    assert [one.measured for one in again.claims] == [one.measured for one in first.claims]


def test_a_run_that_names_files_of_a_moved_checkout_is_reused(small, tmp_path):
    folders = [tmp_path / "before", tmp_path / "after"]
    figures = []
    data = CONFIG[CONFIG.index("dataset:") : CONFIG.index("architecture:")]
    for folder in folders:
        folder.mkdir()
        (folder / "points.csv").write_text("x,y\n-0.5,-1\n1.5,2\n")
        (folder / "small.yaml").write_text(
            CONFIG.replace(data, "dataset: {kind: file, path: points.csv}\n")
        )
        figures.append(
            lambda folder=folder: small(
                configs=dict.fromkeys(("first", "second"), str(folder / "small.yaml")),
                evidence=lambda runs: {
                    role: float(run.dataset().y.sum()) for role, run in runs.items()
                },
            )
        )
    figures[0]()
    first = drawn("small-fig1")
    shutil.rmtree(folders[0])
    figures[1]()
    second = drawn("small-fig1")
    assert [run.reused for run in second.runs] == [True, True]
    assert [one.measured for one in second.claims] == [one.measured for one in first.claims]


@pytest.mark.usefixtures("small")
def test_long_runs_of_several_figures_are_trained_side_by_side(tmp_path, monkeypatch):
    alone = drawn("small-fig1")
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path / "other"))
    monkeypatch.setattr(train, "LONG_WORK", -1.0)
    monkeypatch.setattr(train, "Processes", lambda count=None: ThreadPoolExecutor(1))
    seen = []

    @contextlib.contextmanager
    def watch(name, total):
        yield lambda done, _: seen.append((name, done))

    options = {"progress": watch}
    (_, wrong), (_, result), (_, again) = [
        *reproduce_figures(["small-fig1"], **QUICK, preset="ful", **options),
        *reproduce_figures(["small-fig1", "small-fig1"], **QUICK, **options),
    ]
    assert isinstance(wrong, UsageError)  # and nothing was trained for it
    assert seen[-1] == ("long runs", 2)
    assert {name for name, _ in seen} == {"long runs"}
    assert isinstance(result, FigureResult)
    assert isinstance(again, FigureResult)
    assert [[run.reused for run in one.runs] for one in (result, again)] == [
        [False, False],
        [True, True],
    ]
    assert [one.measured for one in result.claims] == [one.measured for one in alone.claims]


@pytest.mark.usefixtures("small")
def test_seeds_are_those_of_the_config_and_the_next_ones():
    result = drawn("small-fig1", seeds=4)
    assert [(run.role, run.seed) for run in result.runs] == [
        (r, s) for s in (5, 6, 7, 8) for r in ("first", "second")
    ]
    assert [run.run.config.seed for run in result.runs] == [5, 5, 6, 6, 7, 7, 8, 8]
    falls = result.over_seeds[0]
    values = [one.measured for one in falls.each]
    assert len(set(values)) == 4
    assert falls.first.measured == values[0] == pytest.approx(result.runs[0].run.final_loss)
    assert values[2] == pytest.approx(result.runs[4].run.final_loss)
    assert [file.name for file in result.files[-2:]] == ["small-fig1.seeds.json", "small-fig1.json"]
    of_seeds = read_document(result.files[-2])
    document = read_document(result.files[-1])
    assert (of_seeds.seeds, len(of_seeds.runs), len(document.runs)) == (4, 8, 2)
    assert [one.measured for one in of_seeds.claims[0].per_seed] == values
    assert document.as_dict()["claims"] == [one.model_dump() for one in result.claims]
    assert seeds_of(result.files[-1], document) == result.over_seeds
    shutil.rmtree(result.runs[-1].run.path)
    assert [found.file for found in verify_figure(result.files[-1])] == [result.runs[-1].run.path]
    of_one = drawn("small-fig1")
    assert (
        seeds_of(of_one.files[-1], document) == result.over_seeds
    )  # as they were: it is the same figure
    other = document.model_copy(update={"claims": document.claims[:1]})
    assert seeds_of(of_one.files[-1], other) == []
    result.files[-2].write_bytes(b"{}")
    assert result.files[-2] in [found.file for found in verify_figure(result.files[-1])]


def test_a_variant_is_the_same_figure_of_other_runs(small, tmp_path):
    flow = tmp_path / "flow.yaml"
    drawn = tmp_path / "drawn.yaml"
    flow.write_text(
        CONFIG.replace("{kind: gd, lr: 0.01, iterations: 50}", "{kind: gradient_flow, until: 0.5}")
    )
    drawn.write_text(CONFIG.replace("small", "drawn"))
    variant = Variant("on the flow", "The flow.", {"first": str(flow)}, {"first": str(drawn)})
    figure = small(variants={"flow": variant}, presets={"full": {"third": str(flow)}})
    result = reproduce("small-fig1", variant="flow", preset="full", seeds=4)
    assert result.figure == "small-fig1-flow"
    assert [path.name for path in result.files] == [
        f"small-fig1-flow.{end}" for end in ("pdf", "png", "seeds.json", "json")
    ]
    kinds = [(run.role, run.run.config.name, run.run.config.optimizer.kind) for run in result.runs]
    assert kinds == [
        ("first", "small", "gradient_flow"),
        ("second", "small", "gd"),
        *[("first", "drawn", "gd"), ("second", "small", "gd")] * 3,
    ]
    told = json.loads(result.files[-1].read_text())
    assert (told["figure"], told["paper"]) == ("small-fig1-flow", "small")
    assert (told["title"], told["caption"]) == ("Small, on the flow", "A caption. The flow.")
    plain = reproduce("small-fig1")  # beside it, not over it
    assert [path.name for path in plain.files] == [
        f"small-fig1.{end}" for end in ("pdf", "png", "json")
    ]
    # one path: near its end the two losses differ by the order of step times curvature
    assert plain.claims[0].measured == pytest.approx(result.claims[0].measured, rel=0.5)
    assert plain.claims[0].measured != result.claims[0].measured
    assert figure.as_variant("flow").variants == {}
    names = [name for name, _ in reproduce_figures(["small-fig1"], variant="flow")]
    assert names == ["small-fig1-flow"]
    with pytest.raises(
        UsageError, match=r"small-fig1 has no variant 'flwo' \(did you mean 'flow'\?\); it has flow"
    ):
        reproduce("small-fig1", variant="flwo")


@pytest.mark.usefixtures("small")
def test_a_run_that_diverges_fails_its_figure_and_the_next_one_follows():
    results = dict(reproduce_figures(["small-fig1"], **QUICK, overrides=["optimizer.lr=1e6"]))
    error = results["small-fig1"]
    assert isinstance(error, RunError)
    assert "diverged" in str(error)
    assert "smaller step" in str(error)


@pytest.mark.usefixtures("small")
def test_a_later_seed_that_diverges_counts_as_not_reproduced():
    changes = ["architecture.activation=linear", "optimizer.lr=0.12"]
    result = drawn("small-fig1", overrides=[*changes, "seed=7"], seeds=4)
    assert [(run.role, run.seed) for run in result.diverged] == [("first", 8), ("second", 8)]
    for over in result.over_seeds:
        assert [one.measured is None for one in over.each] == [False, True, False, False]
        assert over.count.startswith("3 of 4")
    assert read_document(result.files[-2]).diverged == [8, 8]
    with pytest.raises(RunError, match="diverged"):
        drawn("small-fig1", overrides=[*changes, "seed=8"])
