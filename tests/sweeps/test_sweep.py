"""Sweeps: replicas are the runs they would be alone; tables, resumption, failures, executors."""

import csv
import json
import os
import re
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli import api
from dynamics_cli.analysis.networks import Networks, sources_of
from dynamics_cli.config import ConfigError
from dynamics_cli.errors import UsageError
from dynamics_cli.kinds import Dataset, Initialization, Samples
from dynamics_cli.pages.make import page
from dynamics_cli.recording.measures import WeightNorm
from dynamics_cli.runs.errors import CorruptRunError
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store.sealed import write_sealed
from dynamics_cli.sweeps import sweep as of_sweep
from dynamics_cli.sweeps.directory import FIXED, SWEEP, Sweep, verify_sweep
from dynamics_cli.sweeps.find import list_sweeps
from dynamics_cli.sweeps.grid import parse_axis
from dynamics_cli.sweeps.jobs import PlannedSweep
from dynamics_cli.sweeps.sweep import run_sweep
from dynamics_cli.training import loop
from dynamics_cli.training.many import train
from dynamics_cli.training.many.train import Task, train_all
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.signals import Interrupted
from tests.runs.damage import arrays_of, flip
from tests.sweeps.test_grid import BASE


def sweep_of(directory, overrides=(), grid=(), *, base=BASE, seeds=1, record="config", **options):
    """Plan and run a sweep."""
    jobs = PlannedSweep(
        base, list(overrides), [parse_axis(text) for text in grid], seeds=seeds, record=record
    )
    return jobs, run_sweep(jobs, out=directory, **options)


def test_measures_that_take_long_are_shared_by_a_process_for_each_core(tmp_path, monkeypatch):
    measured = {"overrides": ["record.measures=[weight_norm]"], "seeds": 5}
    _, whole = sweep_of(tmp_path / "whole", **measured)
    monkeypatch.setattr(of_sweep, "cores", lambda: 2)
    monkeypatch.setattr(of_sweep, "FEW_STATES", 0)
    monkeypatch.setattr(of_sweep, "LONG_MEASURING", 0.0)
    monkeypatch.setattr(train, "Processes", ThreadPoolExecutor)
    told = []
    _, shared = sweep_of(tmp_path / "shared", **measured, messages=told.append)
    assert re.fullmatch("measures take about .*, shared by 2 processes", told[0])
    assert [[row["path"] for row in sweep.rows] for sweep in (whole, shared)] == [
        ["batches/000000"] * 5,
        ["batches/000000"] * 3 + ["batches/000003"] * 2,
    ]
    assert whole.table.read_bytes() == shared.table.read_bytes()
    for job in range(5):
        one, other = whole.run(job), shared.run(job)
        assert one.losses.tobytes() == other.losses.tobytes()
        assert one.measures["weight_norm"].tobytes() == other.measures["weight_norm"].tobytes()


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["backend=compiled", "optimizer={kind: sgd, lr: 0.01, batch_size: 2, epochs: 40}"],
        ["dtype=float64", "dataset={kind: sphere_teacher, n: 3, dim: 6}"],
    ],
    ids=["gd", "matrix sgd", "other data a seed"],
)
def test_each_replica_is_the_run_it_would_be_alone(tmp_path, overrides):
    jobs, sweep = sweep_of(
        tmp_path / "s",
        overrides,
        ["initialization.scale=0.1,0.5", "optimizer.lr=0.01,0.03"],
        seeds=2,
    )
    (path,) = {row["path"] for row in sweep.rows}
    backend = Run(sweep.path / path).info["backend"]
    for job, row in zip(jobs, sweep.rows, strict=True):
        together = sweep.run(row["job"])
        assert together.config == job.config.model_copy(
            update={"device": together.config.device, "backend": together.config.backend}
        )
        alone_config = job.config.model_copy(update={"backend": backend})
        alone = obtain_run(plan_run(alone_config, tmp_path / f"alone-{job.number}")).run
        assert_array_equal(together.loss_iterations, alone.loss_iterations)
        assert_allclose(together.losses, alone.losses, rtol=2e-5, atol=1e-7 * alone.losses[0])
        for name, values in alone.parameters.items():
            assert_allclose(together.parameters[name], values, rtol=1e-3, atol=2e-5)
        assert together.final_loss == pytest.approx(alone.final_loss, rel=2e-5, abs=1e-9)
        for name, values in alone.measures.items():
            assert row[name] == pytest.approx(values[-1])


def test_the_table_has_every_setting_and_number(tmp_path):
    jobs, sweep = sweep_of(
        tmp_path / "s",
        ["loss.kind=logistic"],
        ["architecture.width=4,8", "loss.reduction=mean,sum"],
        seeds=3,
    )
    with sweep.table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(jobs) == 12
    for row, job, of_api in zip(rows, jobs, sweep.rows, strict=True):
        assert (int(row["job"]), int(row["seed"])) == (job.number, job.config.seed)
        assert (int(row["architecture.width"]), row["loss.reduction"]) == tuple(
            job.settings.values()
        )
        for name in ("final_loss", "train_accuracy"):
            assert float(row[name]) == of_api[name]
    assert sweep.counts() == {"complete": 12, "diverged": 0, "failed": 0}
    assert Sweep(tmp_path / "s").rows == sweep.rows


def test_a_second_call_trains_nothing(tmp_path, monkeypatch):
    _, first = sweep_of(tmp_path / "s", [], ["architecture.width=4,8,9"], seeds=2)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.npy")}
    monkeypatch.setattr(loop.TrainingLoop, "run", lambda self: pytest.fail("trained again"))
    _, again = sweep_of(tmp_path / "s", [], ["architecture.width=4,8,9"], seeds=2)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.npy")} == before
    assert again.rows == first.rows
    with pytest.raises(UsageError, match="holds another sweep"):
        sweep_of(tmp_path / "s", [], ["architecture.width=4,8"], seeds=2)


def test_jobs_that_measure_different_things_are_not_trained_together(tmp_path):
    points = "{kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0]"
    grid = [f"dataset={points}}},{points}, x_test: [[1.0]], y_test: [1.0]}}"]
    _, sweep = sweep_of(tmp_path / "s", ["optimizer.iterations=20"], grid, seeds=2)
    assert [row["test_loss"] is None for row in sweep.rows] == [True, True, False, False]


def _apart(directory, overrides, monkeypatch):
    """Return the jobs of a sweep that are given to processes, which train none here."""
    given = []

    def noted(kinds, of, directory, *others, **options):
        given.append(Path(directory).name)
        return "not trained"

    with monkeypatch.context() as patch:
        patch.setattr(train, "Processes", ThreadPoolExecutor)
        patch.setattr(train, "work", noted)
        sweep_of(directory, overrides, ["optimizer.lr=0.01,0.02,0.03"])
    return sorted(given)


def test_jobs_that_cannot_be_batched_are_trained_here_by_executors_and_processes_alike(
    tmp_path, monkeypatch
):
    deep = [
        "architecture={kind: fully_connected, widths: [4], centered: true}",
        "backend=torch",
        "initialization={kind: default_scaled}",
        "optimizer.iterations=20",
    ]
    lr = ["optimizer.lr=0.01,0.02"]
    _, here = sweep_of(tmp_path / "here", deep, lr)
    _, there = sweep_of(tmp_path / "there", deep, lr, workers=1)
    assert here.table.read_bytes() == there.table.read_bytes()
    assert _apart(tmp_path / "short", deep, monkeypatch) == []
    long = [*deep, f"optimizer.iterations={train.LONG_WORK // train.CALL_WORK + 1}"]
    assert _apart(tmp_path / "long", long, monkeypatch) == ["000000", "000001", "000002"]
    monkeypatch.setattr(train, "SHORT_SECONDS", -1.0)
    assert _apart(tmp_path / "late", deep, monkeypatch) == ["000001", "000002"]
    assert [(row["path"], row["status"]) for row in here.rows] == [
        (f"jobs/00000{k}", "complete") for k in range(2)
    ]


def test_an_interrupted_sweep_goes_on_with_the_same_bits(tmp_path, monkeypatch):
    arguments = {
        "overrides": ["optimizer.iterations=4000"],
        "grid": ["initialization.scale=0.1,0.2,0.3"],
        "seeds": 2,
    }
    _, whole = sweep_of(tmp_path / "whole", **arguments)
    monkeypatch.setattr(loop, "CALL_SECONDS", 0.001)
    advance = loop.TrainingLoop._advance
    calls = []

    def interrupting(self, chunk):
        calls.append(chunk)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self, chunk)

    monkeypatch.setattr(loop.TrainingLoop, "_advance", interrupting)
    with pytest.raises(Interrupted):
        sweep_of(tmp_path / "stopped", **arguments)
    calls.clear()
    timers = []
    told = []
    monkeypatch.setattr(threading.Timer, "start", lambda timer: timers.append(timer.args))
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as of a command in the background
    try:
        _, late = sweep_of(
            tmp_path / "stopped", **arguments, max_seconds=1e-9, messages=told.append
        )
    finally:
        signal.signal(signal.SIGINT, former)
    assert (late.finished, told) == (False, ["1e-09 s are over; the same command goes on"])
    assert timers == [(os.getpid(), signal.SIGINT)]
    monkeypatch.setattr(loop.TrainingLoop, "_advance", advance)
    _, stopped = sweep_of(tmp_path / "stopped", **arguments)

    assert arrays_of(stopped.path) == arrays_of(whole.path)
    assert stopped.table.read_bytes() == whole.table.read_bytes()


def test_columns_are_computed_from_the_curves_of_each_job(tmp_path, monkeypatch):
    angles = {"kind": "neurons", "of": "angle", "which": [3, 1]}
    records = {
        "measures": ["weight_norm", angles],
        "snapshots": {"kind": "every", "interval": 50},
    }
    columns = {
        "early": "first(loss < 0.5)",
        "late": "first(loss < optimizer.lr / 20)",
        "gap": "late - early",
        "norm": "mean(weight_norm, 2)",
        "turned": "last(neurons_angle.3) - at(neurons_angle.3, 0)",
    }
    base = {**BASE, "record": records, "sweep": {"grid": {"optimizer.lr": "0.01,0.02"}, "seeds": 3}}
    plain = api.sweep(base, out=tmp_path / "s")
    monkeypatch.setattr(loop.TrainingLoop, "run", lambda self: pytest.fail("trained again"))
    base["sweep"]["columns"] = columns
    sweep = api.sweep(base, out=tmp_path / "s")
    for row, before in zip(sweep.rows, plain.rows, strict=True):
        run = sweep.run(row["job"])
        for name, bound in (("early", 0.5), ("late", row["optimizer.lr"] / 20)):
            reached = run.loss_iterations[run.losses < bound].tolist()
            assert row[name] == next(iter(reached), None)
        both = None not in (row["early"], row["late"])
        assert row["gap"] == (row["late"] - row["early"] if both else None)
        assert row["norm"] == pytest.approx(run.measures["weight_norm"][-2:].mean())
        w, bias = run.parameters["hidden_weight"][:, 2].T
        angle = np.degrees(np.arctan2(bias, w))
        assert row["neurons_angle.3"] == pytest.approx(angle[-1], rel=1e-6)
        assert row["turned"] == pytest.approx(angle[-1] - angle[0], abs=1e-4)
        assert {key: row[key] for key in before} == before
    assert {row["late"] is None for row in sweep.rows} == {True, False}
    assert Networks(sources_of([sweep])).columns[: len(columns)] == list(columns)
    assert api.picture(sweep, y="gap").charts[0].xlabel != "iteration"
    shown = next(panel for panel in page(sweep).panels if "columns" in panel)
    assert set(columns) <= {column["name"] for column in shown["columns"]}
    with pytest.raises(UsageError, match="gap is one number of each run, without a curve"):
        api.picture(sweep, y="gap", x="iteration")


@pytest.mark.parametrize(
    ("column", "record", "told"),
    [
        ("a: frist(loss < 1)", "config", "'frist(loss < 1)' is not known here"),
        ("a: last(weight_nrm)", "config", "no curve 'weight_nrm' (did you mean 'weight_norm'?)"),
        ("a: last(weight_norm) * depth", "config", "depth is neither swept nor a number"),
        ("weight_norm: last(loss)", "config", "the table has a column of this name"),
        ("a b: last(loss)", "config", "a column is called by one word"),
        ("a: least(weight_norm)", "light", "least needs the whole curve of weight_norm"),
        ("a: first(loss < 1)", "ends", "first needs the whole curve of loss"),
        ("a: last(weight_norm) + least(loss)", "light", ""),
    ],
)
def test_columns_are_checked_by_line_before_anything_is_trained(tmp_path, column, record, told):
    file = tmp_path / "my.yaml"
    sections = {**BASE, "record": {"measures": ["weight_norm"]}}
    lines = [f"{key}: {json.dumps(section)}" for key, section in sections.items()]
    lines += ["sweep:", f"  record: {record}", "  columns:", f"    {column}"]
    file.write_text("\n".join(lines))
    if not told:
        assert api.plan_sweep(file).described().columns == {"a": column[3:]}
        return
    with pytest.raises(ConfigError) as refused:
        api.plan_sweep(file)
    (problem,) = refused.value.problems
    name = column.partition(":")[0]
    assert (problem.line, problem.key) == (len(lines), f"sweep.columns.{name}")
    assert told in problem.message


def define_kinds_that_differ_by_seed():
    class Unlucky(Initialization, kind="unlucky"):
        """Fails for one seed."""

        def draw(self, problem, streams):
            if streams.seed == 1:
                raise ValueError("no such weights")
            rng = streams.rng("initialization")
            return {name: rng.normal(size=shape) for name, shape in problem.shapes.items()}

    class Odd(Dataset, kind="odd"):
        """Has a sample more for one seed."""

        def load(self, streams):
            x = streams.rng("data").normal(size=(4 + (streams.seed == 1), 2))
            return Samples(x, x[:, 0], None, None)


def unsolvable(self, state):
    """Fail as a decomposition does for one seed."""
    if state.problem.config.seed == 1:
        raise np.linalg.LinAlgError("SVD did not converge")
    return 1.0


@pytest.mark.parametrize(
    ("changes", "failures"),
    [
        (["initialization={kind: unlucky}"], {1: "ValueError: no such weights"}),
        (["record.measures=[weight_norm]"], {1: "SVD did not converge"}),
        (["dataset={kind: odd}"], {}),
    ],
    ids=["own kind", "bundled measure", "shapes"],
)
def test_jobs_of_a_batch_that_fails_are_trained_one_by_one(
    tmp_path, monkeypatch, kinds_as_before, changes, failures
):
    monkeypatch.setattr(WeightNorm, "measure", unsolvable)
    define_kinds_that_differ_by_seed()
    told = []
    options = {"seeds": 3, "messages": told.append}
    arguments = [*changes, "optimizer.iterations=3"]
    _, sweep = sweep_of(tmp_path / "s", arguments, **options)
    assert "3 jobs are trained one by one" in told[0]
    assert [row["status"] for row in sweep.rows] == [
        "failed" if seed in failures else "complete" for seed in range(3)
    ]
    assert all(text in sweep.rows[seed]["message"] for seed, text in failures.items())
    told.clear()
    _, again = sweep_of(tmp_path / "s", arguments, **options)
    assert (again.rows, told) == (sweep.rows, [])
    assert Sweep(tmp_path / "s").rows == sweep.rows


@pytest.fixture(scope="module")
def trained_alone(tmp_path_factory):
    """A folder with two sweeps, of four jobs each that are trained one by one."""
    folder = tmp_path_factory.mktemp("alone")
    rule = "{{kind: adam, lr: {}, iterations: 20}}"
    grid = [f"optimizer={rule.format(0.01)},{rule.format(0.02)}"]
    for name, scale in (("s", 0.1), ("other", 0.3)):
        alone = ["backend=torch", "architecture.centered=true", f"initialization.scale={scale}"]
        sweep_of(folder / name, alone, grid, seeds=2)
    return folder


def exchange(a, b):
    a.rename(a.parent / "aside")
    b.rename(a)
    (a.parent / "aside").rename(b)


ATTACKS = {
    "none": lambda own, other: None,
    "exchanged": lambda own, other: exchange(own / "000000", own / "000003"),
    "of another sweep": lambda own, other: exchange(own / "000001", other / "000001"),
    "deleted": lambda own, other: shutil.rmtree(own),
    "one deleted": lambda own, other: shutil.rmtree(own / "000001"),
}
MOVED = "was exchanged: another run stands there"


@pytest.mark.parametrize(
    ("attack", "finished", "wrong", "told"),
    [
        ("none", True, [], ""),
        ("exchanged", True, ["000000", "000003"], MOVED),
        ("of another sweep", True, ["000001"], MOVED),
        ("deleted", True, ["000000", "000001", "000002", "000003"], "of this sweep is gone"),
        ("one deleted", False, [], ""),
        ("exchanged", False, ["000000", "000003"], MOVED),
        ("of another sweep", False, ["000001"], MOVED),
    ],
)
def test_a_sweep_knows_its_runs(tmp_path, trained_alone, attack, finished, wrong, told):
    place = shutil.copytree(trained_alone, tmp_path / "place")
    ATTACKS[attack](place / "s/jobs", place / "other/jobs")
    if not finished:
        described = Sweep(place / "s").described
        described.model_copy(update={"table": None}).write(place / "s")
    found = verify_sweep(place / "s")
    assert [one.file.name for one in found] == wrong
    assert all(told in one.problem for one in found)
    if wrong:
        with pytest.raises(CorruptRunError, match="of this sweep"):
            api.picture(Sweep(place / "s"), y="loss")
    elif not finished:
        assert [row["job"] for row in Sweep(place / "s").rows] == [0, 2, 3]


def test_data_that_change_while_a_sweep_is_trained_fail_its_jobs(tmp_path):
    data = tmp_path / "d.csv"
    data.write_text("0.1,1\n-0.3,-1\n")
    overrides = [f"dataset={{kind: file, path: {data}}}", "optimizer.iterations=2"]
    jobs = PlannedSweep(BASE, overrides, [], seeds=2)
    assert len(jobs.hashes) == 2
    before = data.read_text()
    data.write_text("0.1,-1\n-0.3,1\n")
    changed = run_sweep(jobs, out=tmp_path / "s")
    assert changed.counts() == {"complete": 0, "diverged": 0, "failed": 2}
    assert "a data file, or code that is not bundled, changed" in changed.rows[0]["message"]
    data.write_text(before)
    shutil.rmtree(tmp_path / "s" / changed.rows[0]["path"])
    assert run_sweep(jobs, out=tmp_path / "s").counts()["complete"] == 2


@pytest.mark.parametrize("array", ["losses.npy", "measures/weight_norm.npy"])
def test_the_same_sweep_again_trains_a_damaged_job_again_and_says_so(tmp_path, array):
    overrides = ["optimizer.iterations=20", "record.measures=[weight_norm]"]
    _, sweep = sweep_of(tmp_path / "s", overrides, seeds=2)
    file = sweep.path / sweep.rows[0]["path"] / array
    whole = file.read_bytes()
    file.write_bytes(flip(whole, -5))
    told = []
    _, again = sweep_of(tmp_path / "s", overrides, seeds=2, messages=told.append)
    assert told == [f"{file} is damaged: its rows do not fit their checksum; it is trained again"]
    assert (file.read_bytes(), again.rows, verify_sweep(sweep.path)) == (whole, sweep.rows, [])


def test_the_table_is_part_of_what_is_verified(tmp_path):
    _, sweep = sweep_of(tmp_path / "s", ["optimizer.iterations=2"], ["loss.reduction=mean,sum"])
    assert verify_sweep(sweep.path) == []
    table = sweep.table.read_text()
    sweep.table.write_text(table.replace("complete", "failed", 1))
    (edited,) = verify_sweep(sweep.path)
    sweep.table.unlink()
    (gone,) = verify_sweep(sweep.path)
    assert {edited.file, gone.file} == {sweep.table}
    assert ("was it edited?" in edited.problem, "cannot be read" in gone.problem) == (True, True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(
            (key, None)
            for key in ("hash", "axes", "computed", "points", "jobs", "batches", "config")
        ),
        ("axes", [{"key": "seed"}]),
        ("points", [[1.0], [2.0]]),
        ("seeds", 0),
        ("labels", 7),
        ("hashes", ["0"]),
        ("columns", {"a": 1}),
        ("batches", [[0, 7]]),
        ("config", {"seed": "0"}),
        ("table", {"columns": ["job"], "rows": [[0]]}),
        ("table", {"columns": [*FIXED, "final_loss"], "rows": [[0, 0]]}),
        ("table", {"columns": [*FIXED, "final_loss"], "rows": [[0] * 8]}),
    ],
)
def test_a_description_of_a_wrong_form_is_damage_whatever_its_checksum(tmp_path, key, value):
    described = PlannedSweep(BASE, [], [], seeds=2).described([[0, 1]])
    described.write(tmp_path)
    assert verify_sweep(tmp_path) == []
    plain = described.model_dump()
    changed = {name: entry for name, entry in plain.items() if name != key}
    write_sealed(tmp_path / SWEEP, changed if value is None else changed | {key: value})
    (found,) = verify_sweep(tmp_path)
    assert (found.file.name, found.problem[:28]) == (SWEEP, "it is not one that dyn write")


def test_a_damaged_sweep_hides_no_other_in_a_list(tmp_path):
    for name in ("a", "b"):
        sweep_of(tmp_path / name, ["optimizer.iterations=2"])
    file = tmp_path / "a" / SWEEP
    file.write_bytes(flip(file.read_bytes(), -5))
    damaged, whole = list_sweeps(tmp_path)
    assert (damaged["status"], damaged["complete"]) == ("damaged", None)
    assert "checksum" in damaged["problem"]
    assert (whole["status"], whole["complete"]) == ("complete", 1)


def test_a_sweep_takes_no_batch_of_another_and_verify_names_its_jobs(tmp_path):
    of = [
        api.plan_sweep(
            BASE,
            {"initialization.scale": "0.1:1:4"},
            overrides=["optimizer.iterations=2"],
            seeds=3,
            seed=seed,
            record="light",
        )
        for seed in (0, 7)
    ]
    own = run_sweep(of[0], out=tmp_path)
    assert (len(own.rows), verify_sweep(tmp_path)) == (12, [])
    first = own.rows[0]["path"]
    numbers = [row["job"] for row in own.rows if row["path"] == first]
    shutil.rmtree(tmp_path / first)
    list(train_all([Task([of[1][number].config for number in numbers], tmp_path / first)]))
    again = run_sweep(of[0], out=tmp_path)
    assert again.counts()["failed"] == len(numbers)
    assert "holds a run of another config" in again.rows[0]["message"]
    found = verify_sweep(tmp_path)
    assert (len(found), found[0].problem[:13]) == (len(numbers), "job 0 failed:")


def test_labels_of_the_config_are_kept_and_another_label_trains_nothing(tmp_path, monkeypatch):
    def swept(label):
        section = {"grid": {"initialization.scale": [0.1, 0.2]}, "labels": label}
        return api.plan_sweep({**BASE, "sweep": section}, overrides=["optimizer.iterations=2"])

    first = run_sweep(swept({"initialization.scale": "size"}), out=tmp_path)
    monkeypatch.setattr(loop.TrainingLoop, "run", lambda self: pytest.fail("trained again"))
    again = run_sweep(
        swept({"initialization.scale": "size s", "final_loss": "error"}), out=tmp_path
    )
    assert (again.finished, again.rows) == (True, first.rows)
    (chart,) = api.picture(Sweep(tmp_path), y="final_loss").charts
    assert (chart.xlabel, chart.ylabel) == ("size s", "error")
    with pytest.raises(UsageError, match="optimizer.lr is not swept; this sweep varies init"):
        swept({"optimizer.lr": "step"})
