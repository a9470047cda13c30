"""Tasks are cut by the plan alone; a million jobs are made from their numbers; seeds of data and of initial weights."""

from __future__ import annotations

import json
import shutil
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from dynamics_cli import api
from dynamics_cli.sweeps.directory import read_sweep, verify_sweep, write_sweep
from dynamics_cli.sweeps.jobs import planned_again
from dynamics_cli.sweeps.sweep import needs, prospect, run_sweep
from dynamics_cli.sweeps.table import Results
from dynamics_cli.sweeps.tasks import Tasks, train, work
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.replicas import BATCH_SECONDS
from tests.sweeps.test_grid import BASE, SWEPT, swept  # noqa: F401


def test_a_million_jobs_are_no_million_objects():
    tracemalloc.start()
    planned = api.plan_sweep(BASE, {"initialization.scale": "1e-6:10:log:1000", "loss.kind": ["mse", "half_mse"]},
                             seeds=500, record="ends")  # fmt: skip
    tasks = Tasks(planned)
    assert (len(planned), len(planned.hash), tracemalloc.get_traced_memory()[0] < 64e6) == (1_000_000, 64, True)
    tracemalloc.stop()
    assert len(tasks) == 2 * 48
    assert np.array_equal(np.sort(np.concatenate([task.numbers for task in tasks])), np.arange(1_000_000))
    job = planned[123_456]  # point 246 of 2000: the 124th scale, the first loss; seed 456
    assert (job.settings["loss.kind"], job.config.loss.kind, job.config.seed) == ("mse", "mse", 456)
    assert job.config.initialization.scale == pytest.approx(1e-6 * 1e7 ** (123 / 999))
    assert (job.config.record.loss_every, planned.cells(123_456)) == (300, (job.settings, 456))


def test_workers_make_the_jobs_of_the_driver_from_the_description(swept):  # noqa: F811
    planned = api.plan_sweep(swept)
    again = planned_again(json.loads(json.dumps(planned.described())))
    assert [job.config for job in again] == [job.config for job in planned]
    assert [job.settings for job in again] == [job.settings for job in planned]
    assert [task.numbers.tolist() for task in Tasks(again)] == [task.numbers.tolist() for task in Tasks(planned)]


def widths(seeds=1):
    """Plan a sweep of two widths, which are not trained together."""
    return api.plan_sweep(BASE, {"architecture.width": [2, 3]}, overrides=["optimizer.iterations=5"], seeds=seeds)


def test_a_worker_needs_a_directory_and_a_number(tmp_path):
    planned, told = widths(seeds=2), []

    def engine(directory, numbers):
        told.extend((directory, number) for number in numbers)
        for number in reversed(numbers):
            yield number, work(directory, number)

    sweep = run_sweep(planned, out=tmp_path / "s", engine=engine)
    assert told == [(str(tmp_path / "s"), 0), (str(tmp_path / "s"), 1)]
    assert sweep.results.counts() == {"complete": 4, "diverged": 0, "failed": 0}
    columns = np.load(tmp_path / "s/columns.npz")
    assert columns["architecture.width"].tolist() == [2, 2, 3, 3]
    assert columns["final_loss"].tolist() == [row["final_loss"] for row in sweep.rows]
    assert columns["status"].tolist() == ["complete"] * 4
    whole = (tmp_path / "s/columns.npz").read_bytes()
    (tmp_path / "s/columns.npz").write_bytes(whole[:-1])
    assert [found.file.name for found in verify_sweep(tmp_path / "s")] == ["columns.npz"]
    run_sweep(planned, out=tmp_path / "s", engine=engine)
    assert (tmp_path / "s/columns.npz").read_bytes() == whole
    assert verify_sweep(tmp_path / "s") == []


@pytest.mark.parametrize(("points", "seeds"), [(2, 2), (104, 100)])
def test_a_sweep_of_any_size_takes_no_batch_of_another(tmp_path, points, seeds):
    of = [api.plan_sweep(BASE, {"initialization.scale": f"0.1:1:{points}"}, overrides=["optimizer.iterations=2"],
                         seeds=seeds, seed=seed, record="ends") for seed in (0, 7)]  # fmt: skip
    own = run_sweep(of[0], out=tmp_path)
    began = time.monotonic()
    assert (len(own.results), verify_sweep(tmp_path)) == (points * seeds, [])
    assert time.monotonic() - began < 10
    shutil.rmtree(tmp_path / "batches/000000")
    train(of[1], Tasks(of[1])[0], tmp_path)
    assert "another run" in verify_sweep(tmp_path)[0].problem
    again = run_sweep(of[0], out=tmp_path).results
    assert again.counts()["failed"] == len(own.results.tasks[0].numbers)
    assert "holds a run of another config" in again.first_failure()


def test_jobs_that_do_not_belong_together_after_all_are_trained_alone(tmp_path):
    planned = widths()
    tasks = Tasks(planned)
    both = replace(tasks[0], name="batches/000000", numbers=np.array([0, 1]))
    assert train(planned, both, tmp_path) == ""
    results = Results(planned, tasks, tmp_path)
    assert results.read(both)
    assert results.columns["path"].tolist() == ["jobs/000000", "jobs/000001"]


DRAWN = "dataset={kind: orthonormal, n: 3, dim: 6}"


def test_seeds_of_data_and_of_initial_weights_part():
    grid, options = {"dataset.seed": [0, 1], "initialization.seed": [0, 1]}, {"overrides": [DRAWN], "seed": 1}
    planned = api.plan_sweep(BASE, grid, **options)
    assert len(Tasks(planned)) == 1
    run = api.plan_sweep(BASE, **options)[0]  # the seed of the run, where none is given
    problems = [build_problem(job.config) for job in [*planned, run]]
    data = [one.dataset.x.tobytes() for one in problems]
    weights = [one.initial_parameters()["hidden_weight"].tobytes() for one in problems]
    assert [data.index(one) for one in data] == [0, 0, 2, 2, 2]
    assert [weights.index(one) for one in weights] == [0, 1, 0, 1, 1]


LARGE = [
    "dataset={kind: gaussians, per_class: 10000, mean: [1.0], dim: 1000, deviation: 0.5}",
    "architecture.width=1000",
    "optimizer.iterations=300",
]


def test_batches_are_cut_by_predicted_time_without_drawing_data(monkeypatch):
    from dynamics_cli.datasets.linear_teacher import Gaussians

    monkeypatch.setattr(Gaussians, "load", lambda *_: pytest.fail("20 million numbers were drawn"))
    planned = api.plan_sweep(BASE, {"initialization.scale": "0.1:1:17", "optimizer.lr": "0.1:1:17"},
                             overrides=LARGE, seeds=16)  # fmt: skip
    tasks = Tasks(planned)
    each = needs(planned, tasks[0].numbers).seconds
    assert len(planned) / len(tasks) == pytest.approx(BATCH_SECONDS / each, rel=0.5)
    assert all(len(task.numbers) * each <= BATCH_SECONDS or len(task.numbers) == 1 for task in tasks)
    assert prospect(planned).seconds == pytest.approx(each * len(planned))
    assert len(Tasks(api.plan_sweep(BASE, {"optimizer.lr": "0.1:1:17"}, seeds=16))) == 1


def test_a_sweep_that_has_begun_keeps_its_batches(tmp_path):
    planned = widths(seeds=4)
    assert [len(task.numbers) for task in Tasks(planned, {"batches": [3, 2]})] == [3, 1, 2, 2]
    slow = api.plan_sweep(BASE, overrides=["optimizer.iterations=2000000000"], seeds=24)
    assert len(Tasks(slow)) > len(Tasks(slow, {})) == 1  # one of before batches were cut by time
    run_sweep(planned, out=tmp_path / "s")
    described = {**read_sweep(tmp_path / "s"), "batches": [2, 2]}
    shutil.rmtree(tmp_path / "s/batches")
    del described["table"]
    write_sweep(tmp_path / "s", described)
    again = run_sweep(planned, out=tmp_path / "s")
    assert sorted(path.name for path in (tmp_path / "s/batches").iterdir()) == ["000000", "000002", "000004", "000006"]
    assert again.results.counts()["complete"] == 8
    assert read_sweep(tmp_path / "s")["batches"] == [2, 2]
