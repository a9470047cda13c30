from __future__ import annotations

from pathlib import Path

from .conftest import Dyn

ROOT = Path("outputs/runs")


def test_prune_asks(dyn: Dyn, two: tuple[Path, Path]) -> None:
    no = dyn("runs", "prune", "--status", "diverged", input="n\n")
    assert no.code == 0
    assert no.out.strip() in ("", "n")  # older runners of click echo the answer there, or the question
    assert two[1].name in no.err
    assert "delete 1 run, " in no.out + no.err
    assert "nothing deleted\n" in no.err
    assert two[1].exists()
    yes = dyn("runs", "prune", "--status", "diverged", input="y\n")
    assert yes.code == 0
    assert "deleted 1 run, " in yes.err.splitlines()[-1]
    assert not two[1].exists()
    assert two[0].exists()


def test_prune_does_nothing_when_nobody_answers(dyn: Dyn, two: tuple[Path, Path]) -> None:
    answer = dyn("runs", "prune", "--status", "diverged", input="")
    assert answer.code == 2
    assert "nothing is deleted without an answer; --yes deletes without asking" in answer.err
    assert two[1].exists()


def test_prune_dry_run(dyn: Dyn, two: tuple[Path, Path]) -> None:
    answer = dyn("runs", "prune", "--older-than", 0, "--dry-run")
    assert answer.code == 0
    assert answer.err.startswith("would delete 2 runs, ")
    assert all(path.name in answer.out and path.exists() for path in two)


def test_prune_of_nothing(dyn: Dyn) -> None:
    answer = dyn("runs", "prune", "--older-than", 0)
    assert (answer.code, answer.out, answer.err) == (0, "", "deleted 0 runs, 0 B\n")


def test_runs_are_pruned_by_name(dyn: Dyn, place: Path) -> None:
    paths = [dyn("train", "toy.yaml", "--seed", k, "--json").json["path"] for k in range(3)]
    answer = dyn("runs", "prune", Path(paths[0]).name, paths[1], paths[1], "--yes", "--json")
    assert (answer.json["dry_run"], [run["path"] for run in answer.json["deleted"]]) == (False, paths[:2])
    assert [Path(path).exists() for path in paths] == [False, False, True]
