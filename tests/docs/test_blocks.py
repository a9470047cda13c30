"""Every command, file and block of code of README and the handbook runs, and prints what its page shows."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from .blocks import (
    SHOWN,
    PageError,
    Runner,
    blocks_of,
    check_options,
    commands_of,
    matches,
    pages,
    simple_commands,
    split_comment,
    with_options,
)

PAGES = pages()


@pytest.mark.docs
@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, tmp_path: Path) -> None:
    try:
        Runner(name, PAGES[name], tmp_path / "page").run()
    except PageError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.mark.docs
def test_no_block_escapes() -> None:
    languages: Counter[str] = Counter()
    for name, path in PAGES.items():
        for block in blocks_of(path.read_text(encoding="utf-8"), path):
            where = f"{name}, line {block.line}: {block.language!r}"
            if block.language == "bash":
                assert name == "README", where
            else:
                assert block.caption or block.language in SHOWN, where
            languages["file" if block.caption else block.language] += 1
    assert languages["bash"] == 2  # of README, run by CI word for word
    assert languages["console"] >= 10
    print("blocks:", ", ".join(f"{count} {language}" for language, count in languages.items()))


def test_dyn_is_that_of_the_environment(tmp_path: Path) -> None:
    runner = Runner("page", tmp_path / "page.md", tmp_path / "page")
    assert shutil.which("dyn", path=runner.environment["PATH"]) == str(Path(sys.executable).parent / "dyn")
    assert not [key for key in runner.environment if key.startswith("DYN_")]


def run(text: str, folder: Path) -> Runner:
    page = folder / "page.md"
    page.write_text(text)
    runner = Runner("page", page, folder / "page")
    runner.run()
    return runner


GOOD = {
    "no output": "```console\n$ true\n```",
    "output": "```console\n$ echo a; echo b >&2\na\nb\n$ echo c\nc\n```",
    "elided": "```console\n$ printf 'a 1.5 s\\nx\\ny\\nend\\n'\na ... s\n...\nend\n```",
    "exit code": "```console\n$ exit 3  # exit code 3\n$ (exit 4)  # exit code 4\n```",
    "state": "```console\n$ mkdir sub && cd sub && export A='x y'\n$ echo \"$A\" $(basename $PWD)\nx y sub\n```",
    "continued": "```console\n$ echo a \\\n    b\na b\n```",
    "file": "```{code-block} yaml\n:caption: sub/a\\_.yaml\n\na: 1\n```\n```console\n$ cat sub/a_.yaml\na: 1\n```",
    "in a note": "::::{note}\n:class: x\n\n```console\n$ echo a\na\n```\n::::",
    "in a list": "- a\n  ```console\n  $ echo a\n  a\n  ```",
    "python": "```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```",
    "no output of python": "```python\nprint(1)\n```\nAnd then\n```text\n2\n```",
    "part": "```yaml\narchitecture: {width: 20}\n```\n```yaml\nsweep: {seeds: 3}\n```",
    "in short": "```console\n$ dyn list kinds loss | grep mse  # in short: --help\n```\n",
    "needs": "```console\n$ dyn sweep my.yaml --engine slurm --time 02:00:00  # needs Slurm\n```",
    "nothing to run": "```text\nx\n```\n```{math}\nx\n```\n```{image} a.png\n```\n",
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_true_pages_pass(text: str, tmp_path: Path) -> None:
    if "in short" in text:
        with pytest.raises(
            PageError, match="exit code 1"
        ):  # `--help` was appended before the pipe: grep finds no `mse`
            run(text, tmp_path)
    else:
        run(text, tmp_path)


BAD = {
    "exit code": ("\n```console\n$ false\n```", "line 3: `false` ends with exit code 1, not 0"),
    "other exit code": ("```console\n$ true  # exit code 3\n```", "exit code 0, not 3"),
    "in a pipe": ("```console\n$ false | true\n```", "exit code 1"),
    "output": ("```console\n$ true\n$ echo a\nb\n```", r"line 3: `echo a` prints\n(.*\n)*-b\n\+a"),
    "more output": ("```console\n$ printf 'a\\nb\\n'\na\n```", r"\+b"),
    "less output": ("```console\n$ echo a\na\nb\n```", "-b"),
    "two outputs": ("```console\n$ echo a\nb\n$ echo c\nd\n```", r"-b\n\+a(.*\n)*.*-d\n\+c"),
    "option": ("```console\n$ dyn sweep a.yaml --engin slurm  # needs Slurm\n```", "No such option.*--engin"),
    "command": ("```console\n$ dyn swep a.yaml  # needs Slurm\n```", "no command 'swep'"),
    "command below": ("```console\n$ srun dyn data purge # needs Slurm\n```", "no command 'purge'"),
    "unknown need": ("```console\n$ true  # needs patience\n```", "needs patience"),
    "network": ("```console\n$ pip install x\n```", "needs the network"),
    "in short of nothing": ("```console\n$ ls  # in short: -l\n```", "no command of dyn"),
    "no command": ("```console\ndyn list\n```", "begins with"),
    "python": ("\n\n```python\nx = 1\n1 / 0\n```", "line 4: (.*\n)*.*line 5(.*\n)*.*ZeroDivisionError"),
    "python ends": ("```python\nimport os; os._exit(1)\n```", "Python ended"),
    "python prints": ("```python\nprint(1)\n```\n```text\n2\n```", r"-2\n\+1"),
    "part": ("```yaml\narchitecture: {widht: 20}\n```", "widht: unknown key"),
    "part of a sweep": ("```yaml\nsweep: {sedes: 20}\n```", "sedes"),
    "language": ("```ini\na = 1\n```", "'ini'"),
    "no language": ("```\na = 1\n```", "''"),
    "bash": ("```bash\nls\n```", "'bash'"),
    "in a note": (":::{note}\n```console\n$ false\n```\n:::", "line 3"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_false_pages_fail(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=message):
        run(text, tmp_path)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a ... c", "a b c", True),
        ("a ... c", "a\nc", False),
        ("...\nc", "a\nb\nc", True),
        ("a\n...\nc", "a\nc", True),
        ("a\n...\nc", "a\nb", False),
        ("a\n...\nb\n...\nc", "a\nb\nx\nb\nc", True),
        ("...", "", True),
        ("1.5 (x)", "1.5 (x)  \n\n", True),
        ("1.5", "1x5", False),
        ("done", "10 %\r99 %\rdone", True),
        ("done", "\rrun:  50%|##  | 1/2 [00:00<00:00, 9it/s]\rrun: 100%|####| 2/2 [00:00<00:00, 9it/s]\ndone", True),
    ],
)
def test_elision(expected: str, actual: str, same: bool) -> None:
    assert matches(expected, actual) is same


@pytest.mark.parametrize(
    ("text", "command", "comment"),
    [
        ("dyn a  # needs Slurm", "dyn a", "needs Slurm"),
        ("dyn a '# b' \"c # d\" x#y", "dyn a '# b' \"c # d\" x#y", ""),
        ("echo \\# a # b", "echo \\# a", "b"),
    ],
)
def test_comment(text: str, command: str, comment: str) -> None:
    assert split_comment(text) == (command, comment)


def test_options_are_appended_to_dyn() -> None:
    assert with_options("dyn train a", "-x") == "dyn train a -x"
    assert with_options("dyn train a && dyn show b > c", "-x") == "dyn train a && dyn show b -x > c"
    assert with_options("dyn train a | tail -1", "-x") == "dyn train a -x | tail -1"
    assert with_options("ls", "") == "ls"
    assert [text[a:b].strip() for text in ["a '|' | b && c"] for a, b in simple_commands(text)] == [
        "a '|'",
        "b",
        "",
        "c",
    ]


def test_options_of_placeholders_are_checked_without_running() -> None:
    check_options("parallel dyn sweep my.yaml --workers 1 --shard {}/50 ::: $(seq 50) && dyn sweep my.yaml")
    check_options("dyn --with mine.py train my.yaml --set a.b=1 --device cuda")


def test_commands_know_their_lines(tmp_path: Path) -> None:
    text = "a\n\n```console\n$ x  # exit code 3; in short: --set a=1\nout\n$ y \\\n  z\n```"
    first, second = commands_of(next(blocks_of(text, tmp_path)))
    assert (first.line, first.text, first.code, first.extra, first.expected) == (4, "x", 3, "--set a=1", "out")
    assert (second.line, second.text, second.expected) == (6, "y z", "")
