"""Sweeps in pieces: shards, unfinished sweeps that are looked into, plans."""

import dynamics_cli
from dynamics_cli.runs.run import Run
from dynamics_cli.sweeps import directory as of_sweeps
from dynamics_cli.training.many import train

from .conftest import CONFIG, ROOT

PAGE = ROOT / "docs/how-to/sweeps.md"
GRID = ["--grid", "architecture.width=2,4,8", "--grid", "optimizer.lr=0.01:1:log:3", "--seeds", 2]


def cut_short(monkeypatch, after):
    """Let the sweep stop, as by Ctrl-C, after some of its tasks."""
    run = train.Task.train
    calls = []

    def stopping(*arguments, **options):
        calls.append(arguments)
        if len(calls) > after:
            raise KeyboardInterrupt
        return run(*arguments, **options)

    monkeypatch.setattr(train.Task, "train", stopping)


def test_an_unfinished_sweep_can_be_shown_listed_and_drawn(dyn, place, monkeypatch):
    assert dyn("sweep", "toy.yaml", *GRID, "--out", "whole").code == 0
    sweep = ["sweep", "toy.yaml", *GRID]
    with monkeypatch.context() as patched:
        cut_short(patched, after=2)
        assert dyn(*sweep).code != 0
    (directory,) = (place / "outputs/sweeps").iterdir()
    opened = []
    with monkeypatch.context() as patched:
        patched.setattr(of_sweeps, "Run", lambda path: opened.append(path) or Run(path))
        shown = dyn("show", directory.name, "--json").json
    assert len(opened) == len({*opened}) == 2  # each once
    assert (shown["status"], shown["ended"], shown["jobs"], shown["complete"]) == (
        "unfinished",
        12,
        18,
        12,
    )
    assert "12 of 18: 12 complete, 6 waiting\n" in dyn("show", directory).out
    (listed,) = dyn("list", "sweeps", "--json").json
    assert (listed["status"], listed["complete"], listed["path"]) == (
        "unfinished",
        12,
        str(directory),
    )
    drawn = dyn("plot", directory)
    assert (drawn.code, len(drawn.out.splitlines())) == (0, 3)
    assert "verify" not in dyn("verify", directory).err
    again = dyn(*sweep)
    assert (again.code, "jobs   18 of 18: 18 complete" in again.out) == (0, True)
    assert (directory / "results.csv").read_bytes() == (place / "whole/results.csv").read_bytes()
    assert dyn("show", directory, "--json").json["status"] == "complete"


def test_shards_make_the_same_table(dyn, place):
    """Networks of three shapes are divided among four parts."""
    sweep = ["sweep", "toy.yaml", *GRID]
    whole = dyn(*sweep, "--out", "whole", "--quiet")
    told = []
    for k in (3, 1, 3):
        part = dyn(*sweep, "--out", "s", "--shard", f"{k}/4")
        assert part.code == 0
        told.append(part.err.partition("\n")[0])  # progress may follow
        assert dyn("plot", "s").code == 0
    assert told == [
        "part 3 of 4: 4 of 18 jobs, 4 to train",
        "part 1 of 4: 5 of 18 jobs, 5 to train",
        "part 3 of 4: 4 of 18 jobs, 0 to train",
    ]
    late = "part 9 of 9: 0 of 18 jobs, since the sweep was begun in 8 batches, 0 to train\n"
    assert dyn(*sweep, "--out", "s", "--shard", "9/9").err == late
    assert dyn("show", "s", "--json").json["ended"] == 9
    sweep.append("--quiet")
    before = {path: path.stat().st_mtime_ns for path in (place / "s").rglob("*.npy")}
    assert dyn(*sweep, "--out", "s").out == whole.out.replace("whole", "s")
    assert (place / "s/results.csv").read_bytes() == (place / "whole/results.csv").read_bytes()
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())


def test_the_section_that_the_handbook_shows(dyn, place):
    (section,) = (part for part in PAGE.read_text().split("```yaml\n") if part.startswith("sweep:"))
    (place / "swept.yaml").write_text(CONFIG + section.partition("```")[0])
    planned = dynamics_cli.plan_sweep("swept.yaml")
    assert len(planned) == 25 * 2 * 20
    assert dyn("config", "check", "swept.yaml").out == "swept.yaml: valid\n"
    refused = dyn("train", "swept.yaml")
    assert (
        refused.code,
        "sweep: describes many runs: `dyn sweep swept.yaml` trains them" in refused.err,
    ) == (3, True)
    shown = dyn("show", "swept.yaml")
    assert shown.code == 0, shown.err
    assert shown.out.endswith("\n# points x seeds: 50 x 20 = 1000 jobs, which `dyn sweep` trains\n")
    (place / "again.yaml").write_text(shown.out)
    assert dynamics_cli.plan_sweep("again.yaml").hash == planned.hash
    (place / "left.yaml").write_text(
        CONFIG.replace("lr: 0.01, ", "") + "sweep: {grid: {optimizer.lr: [0.5, 1.0]}}\n"
    )
    left = dyn("show", "left.yaml", "--json").json
    assert (left["optimizer"]["lr"], left["sweep"]) == (0.5, {"grid": {"optimizer.lr": [0.5, 1.0]}})
