"""Check a submission: `python check.py FOLDER`. Exit code 0 when every question passes, else 1."""

import sys
from pathlib import Path

import dynamics_cli as dyn
from dynamics_cli.errors import DynError

CONFIG = Path(__file__).parent / "config.yaml"
FREE = {"q1": {"lr"}, "q2": {"lr", "scale"}, "q3": {"lr", "scale"}}
"""Question -> the settings that an answer may change."""


def run_of(folder, question):
    """Return the run of an answer, trained if it is not there yet."""
    file = folder / f"{question}.yaml"
    if not file.exists():
        raise ValueError(f"there is no file {file.name}")
    run = dyn.load_config(file)
    base = dyn.load_config(CONFIG)
    for section in ("dataset", "architecture", "initialization", "loss", "optimizer"):
        ours = getattr(base, section).model_dump()
        theirs = getattr(run, section).model_dump()
        changed = {key for key in ours | theirs if ours.get(key) != theirs.get(key)} - FREE[
            question
        ]
        if changed:
            raise ValueError(f"{section}.{sorted(changed)[0]} may not be changed")
    return dyn.train(file)


def q1(folder):
    """The loss is below 1e-6 in 5 000 iterations."""
    loss = run_of(folder, "q1").final_loss
    return loss < 1e-6, f"final loss {loss:.2e}, asked < 1e-6"


def q2(folder):
    """The same, and neurons align with the data."""
    run = run_of(folder, "q2")
    alignment = run.measures["alignment"][-1]
    return (
        run.final_loss < 1e-6 and alignment > 0.99,
        f"final loss {run.final_loss:.2e}, asked < 1e-6; alignment {alignment:.4f}, asked > 0.99",
    )


def q3(folder):
    """The same loss, but weights hardly move."""
    run = run_of(folder, "q3")
    moved = run.measures["distance"][-1]
    return (
        run.final_loss < 1e-6 and moved < 0.1,
        (
            f"final loss {run.final_loss:.2e}, asked < 1e-6; weights moved by {moved:.4f} of their"
            " norm, asked < 0.1"
        ),
    )


def q4(folder):
    """The largest stable step at the end of the run of question 3, as a number in q4.txt."""
    file = folder / "q4.txt"
    if not file.exists():
        raise ValueError("there is no file q4.txt")
    said = float(file.read_text())
    true = 2 / run_of(folder, "q3").measures["sharpness"][-1]
    return (
        abs(said / true - 1) < 0.02,
        f"your step {said:.4g}, asked within 2 % of the measured value",
    )


def main(folder):
    """Print a line for each question, and return the exit code."""
    passed = 0
    for question in (q1, q2, q3, q4):
        try:
            right, numbers = question(folder)
        except (ValueError, DynError) as error:
            right = False
            numbers = str(error)
        passed += bool(right)
        print(f"{question.__name__}  {'pass' if right else 'FAIL'}  {numbers}")
    print(f"{passed} of 4 questions pass")
    return 0 if passed == 4 else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
