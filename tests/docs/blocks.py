"""Blocks of the handbook: found by sybil, run in the order of their page, and compared with the
output shown.
"""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
from sybil import Document
from sybil.example import SybilFailure
from sybil.parsers.abstract.lexers import LexerCollection
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer
from sybil.parsers.myst.lexers import DirectiveLexer

from dynamics_cli.cli import main as dyn
from dynamics_cli.config import load_config
from dynamics_cli.config.describe import PLAIN
from dynamics_cli.config.load import load_sweep
from dynamics_cli.errors import DynError

ROOT = Path(__file__).parents[2]
NEEDS = {"Slurm", "a GPU", "the network", "a browser"}
"""What the machine of the tests may lack: commands that need it are checked, not run."""
SECONDS = 180
"""A command that takes longer has failed."""
BLOCKS = LexerCollection(
    [
        FencedCodeBlockLexer(r"[\w-]*", mapping={"language": "arguments", "source": "source"}),
        DirectiveLexer("code-block"),
        DirectiveLexer("literalinclude"),
    ]
)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n?((?:(?!\$ ).*(?:\n|$))*)", re.MULTILINE)
MARK = re.compile(r"(?:  # |; )(needs|in short:|exit code) ([^;\n]*)")
PROGRESS = re.compile(r".*\d+%\|.*\|.*\[.*\]")
SCRIPT = (
    '[ ! -e "$1" ] || . "$1"\n{}\ncode=$?\n{{ declare -px; printf "cd %q\\n" "$PWD"; }} > "$1";'
    " exit $code"
)
"""Runs a command where the last one of the page has left its shell."""
PYTHON = """\
import contextlib, io, json, sys, traceback
told, space = sys.stdout, {"__name__": "__main__"}
for line in sys.stdin:
    out, failed = io.StringIO(), ""
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(*json.loads(line), "exec"), space)
        except BaseException:
            failed = traceback.format_exc()
    print(json.dumps([out.getvalue(), failed]), file=told, flush=True)
"""
"""Runs blocks of a page in one namespace; messages are lines of JSON."""


def pages(root=ROOT):
    """Return the handwritten pages, README and all that git does not ignore below `docs`, by
    name.
    """
    listed = [
        "git",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "README.md",
        "docs/*.md",
    ]
    names = subprocess.run(
        listed, cwd=root, capture_output=True, text=True, check=True
    ).stdout.split()
    found = sorted({root / name for name in names if (root / name).exists()})
    return {
        path.relative_to(root).with_suffix("").as_posix().removeprefix("docs/"): path
        for path in found
    }


def check_options(text):
    """Check that a command of `dyn` exists, and so do its options; raises click.UsageError: it
    does not.
    """
    words = shlex.split(text)
    if "dyn" not in words[:4]:  # behind `srun`, `time`, or assignments
        return
    command = dyn
    rest = words[words.index("dyn") + 1 :]
    context = click.Context(command, info_name="dyn")
    while True:
        _, rest, _ = command.make_parser(context).parse_args(rest)
        if not isinstance(command, click.Group) or not rest:
            return
        name, found, rest = command.resolve_command(context, rest)
        if found is None:
            return
        command = found
        context = click.Context(found, info_name=name, parent=context)


def difference(expected, actual):
    """Return how an output differs from that of the page, where `...` stands for any text;
    nothing if it does not.
    """
    want, got = ("\n".join([*lines(text), ""]) for text in (expected, actual))
    want = re.sub(r"^\.\.\.\n", "...", want, flags=re.MULTILINE)  # no lines are any lines too
    checker = doctest.OutputChecker()
    if checker.check_output(want, got, doctest.ELLIPSIS):
        return ""
    example = doctest.Example("", want)
    return checker.output_difference(example, got, doctest.ELLIPSIS | doctest.REPORT_UDIFF)


def lines(text):
    """Return lines as a terminal leaves them, without progress bars, and without blank lines at
    both ends.
    """
    seen = [line.rstrip().rpartition("\r")[2] for line in text.split("\n")]
    kept = "\n".join(line for line in seen if not PROGRESS.fullmatch(line)).strip("\n")
    return kept.split("\n") if kept else []


class Page:
    """Runs the blocks of one page in a directory of its own, as a reader in a fresh shell and
    Python would.
    """

    def __init__(self, path, folder):
        self.path = path
        self.home = folder / "home"
        self.state = folder / "state"
        self.home.mkdir(parents=True)
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("DYN_", "PYTEST", "COLUMNS"))
        }
        found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"XDG_DATA_HOME": str(folder / "data"), "MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1"}
        self.environment = {**kept, **own, "PATH": found, "PWD": str(self.home)}
        self.python = None
        self.printed = None
        """Where the last block of Python ended in the page, and what it printed."""

    def run(self):
        """Run all blocks; raises SybilFailure: a block fails, or its output is not that of the
        page.
        """
        try:
            for example in Document.parse(str(self.path), self.regions):
                example.evaluate()
        finally:
            if self.python is not None:
                self.python.kill()
                self.python.communicate()

    def regions(self, document):
        """Yield the blocks of a page, those inside notes and tabs too."""
        for region in BLOCKS(document):
            region.parsed, region.evaluator = str(region.lexemes["source"]), self.evaluate
            yield region

    def evaluate(self, example):
        """Run a block; return what is wrong with it."""
        lexemes = example.region.lexemes
        text = example.parsed
        language = example.region.lexemes["arguments"].strip()
        printed = self.printed
        self.printed = None
        if lexemes.get("directive") == "literalinclude":
            text = (self.path.parent / language).read_text(encoding="utf-8")
            language = "text"
        if caption := lexemes.get("options", {}).get("caption"):
            target = self.home / caption.replace("\\", "")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            return None
        if language == "console":
            return self.console(text)
        if language == "python":
            return self.run_python(text, example)
        if language == "yaml":
            return self.check_yaml(text)
        if language == "text" and printed is not None:
            adjoins = not example.document.text[printed[0] : example.region.start].strip()
            return difference(text, printed[1]) if adjoins else None
        if language == "text" or (
            language == "bash" and self.path.stem in ("README", "index")
        ):  # CI runs the latter
            return None
        raise SybilFailure(example, f"a block of language {language!r} without a caption")

    def console(self, text):
        """Run the commands of a block in the shell of the page; return what is wrong."""
        if not text.startswith("$ "):
            return "a console block begins with `$ ` and a command"
        for written, expected in COMMAND.findall(text):
            marks = dict(MARK.findall(written))
            command = MARK.split(written)[0]
            if needed := marks.get("needs"):
                try:
                    check_options(command)
                except click.UsageError as error:
                    return f"`{command}`: {error.format_message()}"
                if needed not in NEEDS:
                    return f"a command may need {', '.join(sorted(NEEDS))}, not {needed}"
                continue
            script = SCRIPT.format(f"{command} {marks.get('in short:', '')}")
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", script, "bash", str(self.state)],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                encoding="utf-8",
                check=False,
            )
            if done.returncode != int(marks.get("exit code", 0)):
                return f"`{command}` ends with exit code {done.returncode}:\n{done.stdout}"
            if expected.strip() and (told := difference(expected, done.stdout)):
                return f"`{command}`\n{told}"
        return None

    def run_python(self, text, example):
        """Run a block in the namespace of the page; return its traceback where it fails."""
        if self.python is None:
            self.python = subprocess.Popen(
                [sys.executable, "-c", PYTHON],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
        self.python.stdin.write(json.dumps(["\n" * example.line + text, self.path.name]) + "\n")
        self.python.stdin.flush()
        answer = self.python.stdout.readline()
        output, failed = json.loads(answer) if answer else ("", "Python ended")
        self.printed = (example.region.end, output)
        return failed or None

    def check_yaml(self, text):
        """Check that a part of a config is valid in the plain config."""
        plain = self.home / ".plain.yaml"
        part = self.home / ".part.yaml"
        plain.write_text(PLAIN, encoding="utf-8")
        extends = (
            "" if re.search(r"^extends:", text, re.MULTILINE) else f"\nextends: {plain.name}\n"
        )
        part.write_text(text + extends, encoding="utf-8")
        try:
            load_sweep(part)
            load_config(part, check_files_exist=False, swept=True)
        except DynError as error:
            return f"no valid part of a config: {error}"
        finally:
            plain.unlink()
            part.unlink()
        return None
