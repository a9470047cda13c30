from __future__ import annotations

from dynamics_cli.config import ConfigError, Mistake
from dynamics_cli.config.errors import key_text
from dynamics_cli.errors import InputError


def test_problem_is_one_line() -> None:
    assert str(Mistake("a.yaml", 3, "optimizer.lr", "is wrong")) == "a.yaml:3: optimizer.lr: is wrong"
    assert str(Mistake("--set", None, "optimizer.lr", "is wrong")) == "--set: optimizer.lr: is wrong"
    assert str(Mistake("a.yaml", None, "", "is empty")) == "a.yaml: is empty"


def test_error_lists_all_problems() -> None:
    problems = [Mistake("a", 1, "b", "c"), Mistake("d", None, "", "e")]
    error = ConfigError(problems)
    assert isinstance(error, InputError)
    assert error.exit_code == 3
    assert error.problems == problems
    assert str(error) == "a:1: b: c\nd: e"


def test_key_text() -> None:
    assert key_text(("dataset", "x", 0, 2)) == "dataset.x[0][2]"
    assert key_text(()) == ""
