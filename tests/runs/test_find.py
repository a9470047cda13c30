from __future__ import annotations

import math
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import UsageError
from dynamics_cli.runs import LockedRunError, find, list_runs, outputs_root, prune_runs, run_lock, runs_root


@pytest.fixture
def root(tmp_path: Path, config: RunConfig, toy: Any) -> Path:
    """Runs a (complete), b (interrupted), c/d (damaged), and things that are not runs."""
    root = tmp_path / "runs"
    toy.train(root / "a", config)
    toy.train(root / "b", config, stop=3)
    toy.train(root / "c" / "d", config)
    (root / "c" / "d" / "run.json").write_text('{"format": 1, "status": 3, "config_sha256": 0}')
    (root / "notes").mkdir()
    (root / "notes" / "config.yaml").write_text("name: mine\n")
    (root / "link").symlink_to(root / "a")
    (root / "file").write_text("")
    return root


def names(found: list[Any]) -> list[str]:
    return [(one["path"] if isinstance(one, dict) else one.path).name for one in found]


def test_runs_are_summed_up(root: Path, toy: Any) -> None:
    a, b, d = list_runs(root)
    assert (a.path, a.name, a.status, a.iterations) == (root / "a", "toy", "complete", toy.last)
    assert a.final_loss == toy.loss(toy.last)
    assert a.size == sum(p.stat().st_size for p in (root / "a").rglob("*") if p.is_file())
    assert abs(a.modified - time.time()) < 60
    assert (b.status, b.iterations) == ("interrupted", 3)
    assert (d.status, d.path) == ("damaged", root / "c" / "d")
    assert math.isnan(d.final_loss)
    assert "was it edited" in d.problem
    assert list_runs(root / "missing") == []
    assert names(list_runs(root / "a")) == ["a"]


def test_prune_deletes_only_what_is_chosen(root: Path) -> None:
    with pytest.raises(UsageError, match="say which runs"):
        prune_runs(root)
    assert names(prune_runs(root, older_than=0, dry_run=True)) == ["a", "b", "d"]
    assert names(prune_runs(root, older_than=1 / 24)) == []
    assert names(prune_runs(root, statuses=["interrupted", "failed"], dry_run=True)) == ["b"]
    assert names(list_runs(root)) == ["a", "b", "d"]
    assert names(prune_runs(root, statuses=["interrupted", "damaged"])) == ["b", "d"]
    assert sorted(p.name for p in root.iterdir()) == ["a", "c", "file", "link", "notes"]
    assert not list((root / "c").iterdir())
    for file in (root / "a").rglob("*"):
        os.utime(file, (0, 0))
    assert names(prune_runs(root, older_than=1 / 24)) == ["a"]
    assert not (root / "a").exists()
    assert (root / "notes" / "config.yaml").exists()


def test_prune_leaves_runs_in_use_and_files_of_others(root: Path) -> None:
    (root / "b" / "thesis.txt").write_text("mine")
    with run_lock(root / "a"):
        assert names(prune_runs(root, statuses=["complete", "running", "interrupted"])) == ["b"]
    assert names(list_runs(root)) == ["a", "d"]
    assert [p.name for p in (root / "b").iterdir()] == ["thesis.txt"]
    shutil.rmtree(root / "b")


def test_where_runs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DYN_OUTPUTS", raising=False)
    assert runs_root() == Path("outputs/runs")
    monkeypatch.setenv("DYN_OUTPUTS", "/elsewhere")
    assert outputs_root() == Path("/elsewhere")
    assert runs_root() == Path("/elsewhere/runs")


def test_prune_spares_what_changes_while_it_takes_the_lock(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynamics_cli.runs.info import read_info, write_info

    take = find.run_lock

    def changed(path: Path, **options: Any) -> Any:
        write_info(path, {**read_info(path), "note": "another process was faster"})
        return take(path, **options)

    def held(path: Path, **options: Any) -> Any:
        raise LockedRunError(str(path))

    for lock in (changed, held):
        monkeypatch.setattr(find, "run_lock", lock)
        assert names(prune_runs(root, statuses=["complete"])) == []
    assert names(list_runs(root)) == ["a", "b", "d"]


def test_runs_deep_below_a_folder_are_left_alone(root: Path) -> None:
    shutil.copytree(root / "b", root / "1" / "2" / "3" / "4")
    shutil.copytree(root / "b", root / "1" / "2" / "3" / "5" / "6")
    assert [s.path.name for s in list_runs(root / "1")] == ["4", "6"]
    assert [s.path.name for s in list_runs(root)] == ["4", "a", "b", "d"]
