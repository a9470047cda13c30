"""The template of the course, which is no page."""

import os
import shutil
import subprocess
import sys

import pytest

from .blocks import ROOT

TUTORIALS = ROOT / "docs" / "tutorials"


def python(*arguments, cwd):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DYN_")}
    command = [sys.executable, *arguments]
    environment = kept | {"MPLBACKEND": "Agg"}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


SOLUTION = {"q1.yaml": None, "q2.yaml": None, "q3.yaml": None, "q4.txt": None}
UNCHANGED = dict.fromkeys(["q1.yaml", "q2.yaml", "q3.yaml"], "extends: ../config.yaml\n") | {
    "q4.txt": "0.5"
}
WIDER = SOLUTION | {"q2.yaml": "extends: q2_.yaml\narchitecture: {width: 500}\n"}


@pytest.mark.docs
@pytest.mark.parametrize(
    ("answers", "verdicts"),
    [
        (SOLUTION, "pass pass pass pass"),
        ({}, "FAIL FAIL FAIL FAIL"),
        (UNCHANGED, "FAIL FAIL FAIL FAIL"),
        (WIDER, "pass FAIL pass pass"),
        (SOLUTION | {"q4.txt": "two"}, "pass pass pass FAIL"),
    ],
    ids=["solution", "empty", "unchanged", "wider", "no number"],
)
def test_course(answers, verdicts, tmp_path):
    for name in ("config.yaml", "check.py"):
        shutil.copy(TUTORIALS / "course" / name, tmp_path)
    (tmp_path / "answers").mkdir()
    for name, text in answers.items():
        reference = (TUTORIALS / "course" / "solution" / name).read_text(encoding="utf-8")
        (tmp_path / "answers" / name).write_text(
            reference if text is None else text, encoding="utf-8"
        )
        (tmp_path / "answers" / name.replace(".", "_.")).write_text(reference, encoding="utf-8")
    done = python("check.py", "answers", cwd=tmp_path)
    assert [line.split()[1] for line in done.stdout.splitlines()[:4]] == verdicts.split(), (
        done.stdout + done.stderr
    )
    assert done.returncode == (0 if "FAIL" not in verdicts else 1)
