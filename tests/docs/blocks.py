"""Blocks of the handbook: read from a page, run in its order, and compared with the output that the page shows.

`python -m tests.docs.blocks how-to/resume` runs one page and prints each command with its true output, for authors.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click

from dynamics_cli.cli import main as dyn
from dynamics_cli.config import load_config
from dynamics_cli.config.describe import PLAIN
from dynamics_cli.config.load import load_sweep
from dynamics_cli.errors import DynError

ROOT = Path(__file__).parents[2]
SHOWN = {"console", "yaml", "python", "text"}
"""Languages of blocks without a caption; with one, a block is a file of any language."""
NEEDS = {"Slurm", "a GPU", "the network", "a browser"}
"""What the machine of the tests may lack: commands that need it are checked, not run."""
FETCHING = {"pip", "pip3", "conda", "uv", "git", "curl", "wget", "apt-get", "docker", "ssh", "rsync"}
SECONDS = 180
"""A command that takes longer has failed."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the line of its first line of text, and the file that it is saved as."""

    language: str
    line: int
    text: str
    caption: str = ""
    adjoins: bool = False
    """Whether nothing but blank lines stands between this block and the last."""


@dataclass(frozen=True)
class Command:
    """A command of a `console` block, the marks behind it, and the output that the page shows."""

    text: str
    line: int
    expected: str
    code: int = 0
    extra: str = ""
    needs: str = ""


class PageError(AssertionError):
    """A page says something that is not true."""


def pages(root: Path = ROOT) -> dict[str, Path]:
    """Return the handwritten pages, README and all that git does not ignore below `docs`, by name."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "README.md", "docs/*.md"]
    names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.split()
    found = sorted({root / name for name in names if (root / name).exists()})
    return {path.relative_to(root).with_suffix("").as_posix().removeprefix("docs/"): path for path in found}


FENCE = re.compile(r"(\s*)(`{3,}|:{3,}|~{3,})\s*(\{([\w:.-]+)\})?\s*([^`]*?)\s*$")
OPTION = re.compile(r"\s*:([\w-]+):\s*(.*?)\s*$")
CODE = {"code-block", "code", "sourcecode", "literalinclude"}
PROSE = {"math", "image", "figure", "toctree", "click", "eval-rst", "raw", "mermaid", "csv-table"}
"""Directives whose content is no block; those that are in neither set may hold blocks, such as notes and tabs."""


def blocks_of(text: str, page: Path, first: int = 1) -> Iterator[Block]:
    """Yield the blocks of a page, those inside notes and tabs too; contents of included files are read."""
    lines, i, adjoins = text.split("\n"), 0, False
    while i < len(lines):
        opened = FENCE.match(lines[i])
        if opened is None:
            adjoins = adjoins and not lines[i].strip()
            i += 1
            continue
        indent, fence, _, directive, argument = opened.groups()
        closing = re.compile(rf"\s*{fence[0]}{{{len(fence)},}}\s*$")
        end = next((k for k in range(i + 1, len(lines)) if closing.match(lines[k])), len(lines))
        inside = [line.removeprefix(indent) for line in lines[i + 1 : end]]
        options = {}
        while directive and inside and (given := OPTION.match(inside[0])):
            options[given[1]] = given[2]
            inside.pop(0)
        if directive and options and inside and not inside[0].strip():
            inside.pop(0)
        line, body = first + end - len(inside), "\n".join(inside)
        if directive is None or directive in CODE:
            language = argument.split()[0] if argument else ""
            if directive == "literalinclude":
                body = (page.parent / argument).read_text(encoding="utf-8").removesuffix("\n")
                language = options.get("language", "text")
            yield Block(language, line, body, options.get("caption", "").replace("\\", ""), adjoins)
        elif directive not in PROSE:
            yield from blocks_of(body, page, line)
        adjoins = True
        i = end + 1


def unquoted(text: str) -> Iterator[tuple[int, str]]:
    """Yield the characters of a shell command outside quotes, with their places."""
    quote, skip = "", False
    for i, char in enumerate(text):
        if skip:
            skip = False
        elif char == "\\" and quote != "'":
            skip = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            yield i, char


def split_comment(text: str) -> tuple[str, str]:
    """Split a command line into the command and its trailing comment."""
    for i, char in unquoted(text):
        if char == "#" and (i == 0 or text[i - 1].isspace()):
            return text[:i].rstrip(), text[i + 1 :].strip()
    return text.rstrip(), ""


def simple_commands(text: str) -> list[tuple[int, int]]:
    """Return where the simple commands of a command line begin and end: between pipes, `&&`, `;` and redirections."""
    borders = [i for i, char in unquoted(text) if char in "|&;<>()"]
    return [(start, end) for start, end in zip([0, *(i + 1 for i in borders)], [*borders, len(text)], strict=True)]


def with_options(text: str, extra: str) -> str:
    """Return the command line with options after its last `dyn` command."""
    for start, end in reversed(simple_commands(text)):
        if extra and text[start:end].split()[:1] == ["dyn"]:
            return f"{text[:end].rstrip()} {extra}{' ' if end < len(text) else ''}{text[end:]}"
    if extra:
        raise ValueError(f"no command of dyn to which `{extra}` could be given")
    return text


def marks(comment: str) -> dict[str, str | int]:
    """Return what a comment tells the test; comments may say other things too.

    Raises:
        ValueError: a command needs what is not in the list.
    """
    told: dict[str, str | int] = {}
    for part in map(str.strip, comment.split(";")):
        if match := re.fullmatch(r"exit code (\d+)", part):
            told["code"] = int(match[1])
        elif match := re.fullmatch(r"in short: (.+)", part):
            told["extra"] = match[1]
        elif match := re.match(r"needs (.+)", part):
            if match[1] not in NEEDS:
                raise ValueError(f"`# {part}`: a command may need {', '.join(sorted(NEEDS))}")
            told["needs"] = match[1]
    return told


def commands_of(block: Block) -> Iterator[Command]:
    """Yield the commands of a `console` block."""
    lines = block.text.split("\n")
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    if not starts or "".join(lines[: starts[0]]).strip():
        raise ValueError("a console block begins with `$ ` and a command")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        shown, last = lines[start:end], 0
        while shown[last].endswith("\\") and last + 1 < len(shown):
            last += 1
        written = "\n".join([*(line[:-1].rstrip() for line in shown[:last]), shown[last]]).removeprefix("$ ")
        text, comment = split_comment(re.sub(r"\n\s*", " ", written))
        yield Command(text, block.line + start, "\n".join(shown[last + 1 :]), **marks(comment))  # type: ignore[arg-type]


def check_options(text: str) -> None:
    """Check that the commands of `dyn` in a command line exist, and so do their options.

    Raises:
        ValueError: there is no such command or option.
    """
    for start, end in simple_commands(text):
        words = shlex.split(text[start:end])
        if "dyn" not in words[:4]:  # behind `srun`, `parallel`, `time`, or assignments
            continue
        command, rest = dyn, words[words.index("dyn") + 1 :]
        context = click.Context(command, info_name="dyn")
        try:
            while True:
                _, rest, _ = command.make_parser(context).parse_args(rest)
                if not isinstance(command, click.Group) or not rest:
                    break
                name, found, rest = command.resolve_command(context, rest)
                if found is None:
                    break
                command, context = found, click.Context(found, info_name=name, parent=context)
        except click.UsageError as error:
            raise ValueError(f"`{text}`: {error.format_message()}") from error


def matches(expected: str, actual: str) -> bool:
    """Whether an output is what is expected: `...` stands for any text in a line, a line of it for any lines."""
    return _match(_lines(expected), _lines(actual))


PROGRESS = re.compile(r".*\d+%\|.*\|.*\[.*\]")


def _lines(text: str) -> list[str]:
    """Return lines as a terminal leaves them, without progress bars, and without blank lines at both ends."""
    lines = [line.rstrip().rpartition("\r")[2] for line in text.split("\n")]
    kept = [line for line in lines if not PROGRESS.fullmatch(line)]
    return "\n".join(kept).strip("\n").split("\n") if any(kept) else []


def _match(expected: list[str], actual: list[str]) -> bool:
    reachable = {0}
    for line in expected:
        if line.strip() == "...":
            reachable = set(range(min(reachable, default=len(actual) + 1), len(actual) + 1))
        else:
            pattern = _pattern(line)
            reachable = {i + 1 for i in reachable if i < len(actual) and pattern.fullmatch(actual[i])}
    return len(actual) in reachable


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, line.split("..."))))


def difference(expected: str, actual: str) -> str:
    """Return both outputs as a diff, in which lines that agree up to `...` count as equal."""
    true, shown = _lines(actual), []
    for line in _lines(expected):
        fitting = next(
            (one for one in true if "..." in line and line.strip() != "..." and _pattern(line).fullmatch(one)), line
        )
        shown.append(fitting)
    return "\n".join(difflib.unified_diff(shown, true, "the page", "the run", lineterm="", n=2))


PYTHON = """\
import contextlib, io, json, sys, traceback
told, space = sys.stdout, {"__name__": "__main__"}
for line in sys.stdin:
    code, name, number = json.loads(line)
    out, failed = io.StringIO(), ""
    with contextlib.redirect_stdout(out):
        try:
            exec(compile("\\n" * (number - 1) + code, name, "exec"), space)
        except BaseException:
            failed = traceback.format_exc()
    print(json.dumps([out.getvalue(), failed]), file=told, flush=True)
"""
"""Runs blocks of a page in one namespace; messages are lines of JSON."""


@dataclass
class Runner:
    """Runs the blocks of one page in a directory of its own, as a reader in a fresh shell and Python would."""

    name: str
    path: Path
    directory: Path
    faults: list[PageError] = field(default_factory=list)
    transcript: list[tuple[str, str]] = field(default_factory=list)
    """Each command with its output."""
    python: subprocess.Popen[str] | None = None

    def __post_init__(self) -> None:
        """Prepare the environment: that of the tests, without settings of dyn, with its own `dyn` on the PATH."""
        self.home = self.directory / "home"
        self.home.mkdir(parents=True)
        self.state = self.directory / "state"
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("DYN_", "PYTEST", "COLUMNS"))}
        found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"XDG_DATA_HOME": str(self.directory / "data"), "MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1"}
        self.environment = {**kept, **own, "PATH": found, "PWD": str(self.home)}

    def run(self) -> None:
        """Run all blocks.

        Raises:
            PageError: a command or block failed, or outputs are not those of the page.
        """
        try:
            output = None
            for block in blocks_of(self.path.read_text(encoding="utf-8"), self.path):
                output = self.block(block, output)
        finally:
            if self.python is not None:
                self.python.kill()
                self.python.communicate()
        if self.faults:
            raise PageError("\n\n".join(map(str, self.faults)))

    def fault(self, line: int, message: str) -> PageError:
        """Return a fault at a line of the page."""
        return PageError(f"{self.name}, line {line}: {message}")

    def block(self, block: Block, output: str | None) -> str | None:
        """Run one block; `output` is what the last printed, if that was of Python; return the same of this."""
        if block.caption:
            target = self.home / block.caption
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text + "\n", encoding="utf-8")
        elif block.language == "console":
            try:
                for command in commands_of(block):
                    self.command(command)
            except ValueError as error:
                raise self.fault(block.line, str(error)) from error
        elif block.language == "python":
            return self.run_python(block)
        elif block.language == "yaml":
            self.check_yaml(block)
        elif block.language == "text" and block.adjoins and output is not None:
            self.compare(block.line, "print", block.text, output)
        elif block.language not in SHOWN and not (block.language == "bash" and self.name == "README"):
            known = ", ".join(sorted(SHOWN))
            raise self.fault(block.line, f"a block of language {block.language!r} without a caption; known are {known}")
        return None

    def command(self, command: Command) -> None:
        """Run a command in the page's shell, or check it where it needs what is not here."""
        text = with_options(command.text, command.extra)
        if command.needs:
            check_options(text)
            return
        for start, end in simple_commands(text):
            if (first := Path((text[start:end].split() or [""])[0]).name) in FETCHING:
                raise self.fault(command.line, f"`{first}` is not run here: `# needs the network`")
        script = (
            f'[ ! -e "$1" ] || . "$1"\n{text}\ncode=$?\n{{ declare -px; printf "cd %q\\n" "$PWD"; }} > "$1"; exit $code'
        )
        try:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", script, "bash", str(self.state)],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise self.fault(command.line, f"`{text}` takes more than {SECONDS} s") from error
        output = "\n".join(_lines(done.stdout.decode()))
        self.transcript.append((text, output))
        if done.returncode != command.code:
            message = f"`{text}` ends with exit code {done.returncode}, not {command.code}:\n{output}"
            raise self.fault(command.line, message)
        if command.expected.strip():
            self.compare(command.line, text, command.expected, output)

    def run_python(self, block: Block) -> str:
        """Run a block in the namespace of the page and return its stdout."""
        if self.python is None:
            self.python = subprocess.Popen(
                [sys.executable, "-c", PYTHON],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
        assert self.python.stdin is not None
        assert self.python.stdout is not None
        self.python.stdin.write(json.dumps([block.text, f"<{self.name}>", block.line]) + "\n")
        self.python.stdin.flush()
        answer = self.python.stdout.readline()
        output, failed = json.loads(answer) if answer else ("", "Python ended")
        self.transcript.append((block.text, output))
        if failed:
            raise self.fault(block.line, f"a block of Python failed:\n{failed}")
        return str(output)

    def check_yaml(self, block: Block) -> None:
        """Check that a part of a config is valid in the plain config."""
        plain, part = self.home / ".plain.yaml", self.home / ".part.yaml"
        plain.write_text(PLAIN, encoding="utf-8")
        extends = "" if re.search(r"^extends:", block.text, re.MULTILINE) else f"\nextends: {plain.name}\n"
        part.write_text(block.text + extends, encoding="utf-8")
        try:
            load_sweep(part)
            load_config(part, check_files_exist=False, swept=True)
        except DynError as error:
            raise self.fault(block.line, f"no valid part of a config: {error}") from error
        finally:
            plain.unlink()
            part.unlink()

    def compare(self, line: int, command: str, expected: str, actual: str) -> None:
        """Note a fault where the output is not the page's."""
        if not matches(expected, actual):
            self.faults.append(self.fault(line, f"`{command}` prints\n{difference(expected, actual)}"))


def main(names: list[str]) -> None:
    """Run pages and print each command with its true output."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            runner = Runner(name, pages()[name], Path(folder) / "page")
            try:
                runner.run()
                print(f"{name}: all is true")
            except PageError as fault:
                print(fault)
            finally:
                for text, output in runner.transcript:
                    print(f"$ {text}\n{output}")


if __name__ == "__main__":
    main(sys.argv[1:])
