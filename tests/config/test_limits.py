"""Configs that are too large, or no files at all: told at once, and briefly."""

import os

from dynamics_cli.config.load import MAX_TOLD
from dynamics_cli.config.reader import MAX_BYTES


def test_a_large_file(problems, here):
    with (here / "run.yaml").open("wb") as handle:
        handle.truncate(2**40)
    told = (
        f"run.yaml: cannot be read: it holds more than {MAX_BYTES} bytes; write the data to a file"
        " of their own"
    )
    assert problems("run.yaml") == [told]


def test_data_that_are_no_files(write, problems, here):
    for name in ("x" * 300 + ".csv", "none/d.csv"):
        path = write(dataset=f"dataset: {{kind: file, path: {name}}}")
        assert problems(path, check_files_exist=False) == []
        assert problems(path) == [
            f"run.yaml:2: dataset.path: there is no file {os.path.normpath(here / name)}"
        ]


def test_many_problems_are_counted(base, write, problems):
    lines = problems(write(text=write("whole.yaml").read_text() + "name: a\n" * 1000))
    assert len(lines) == MAX_TOLD + 1
    assert lines[-1] == f"run.yaml: and {1000 - MAX_TOLD} more problems"
    unknown = {f"key{k}": k for k in range(1000)}
    lines = problems({**base, **unknown})
    assert lines[0].startswith("<config>: key0: unknown key; allowed are name, ")
    assert len(lines) == MAX_TOLD + 1
