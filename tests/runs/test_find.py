import math
import shutil
import time
from pathlib import Path

import pytest

from dynamics_cli.runs.find import runs_below, summarize
from dynamics_cli.runs.store.layout import outputs_root, runs_root


@pytest.fixture
def root(tmp_path, config, toy):
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


def test_runs_are_summed_up(root, toy):
    a, b, d = map(summarize, runs_below(root))
    assert (a["path"], a["name"], a["status"], a["iterations"]) == (
        root / "a",
        "toy",
        "complete",
        toy.last,
    )
    assert a["final_loss"] == toy.loss(toy.last)
    assert a["size"] == sum(p.stat().st_size for p in (root / "a").rglob("*") if p.is_file())
    assert abs(a["modified"] - time.time()) < 60
    assert (b["status"], b["iterations"]) == ("interrupted", 3)
    assert (d["status"], d["path"]) == ("damaged", root / "c" / "d")
    assert math.isnan(d["final_loss"])
    assert "was it edited" in d["problem"]
    assert list(runs_below(root / "missing")) == []
    assert list(runs_below(root / "a")) == [root / "a"]


def test_where_runs_are(monkeypatch):
    monkeypatch.delenv("DYN_OUTPUTS", raising=False)
    assert runs_root() == Path("outputs/runs")
    monkeypatch.setenv("DYN_OUTPUTS", "/elsewhere")
    assert outputs_root() == Path("/elsewhere")
    assert runs_root() == Path("/elsewhere/runs")


def test_runs_deep_below_a_folder_are_left_alone(root):
    shutil.copytree(root / "b", root / "1" / "2" / "3" / "4")
    shutil.copytree(root / "b", root / "1" / "2" / "3" / "5" / "6")
    assert [path.name for path in runs_below(root / "1")] == ["4", "6"]
    assert [path.name for path in runs_below(root)] == ["4", "a", "b", "d"]
