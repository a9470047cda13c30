"""The author's code behind a run, a sweep or a figure: repository, script, command, packages.

Begin with `code`. No entry and no copy holds a path of the machine, or the name of the host or the
user: runs are shown to reviewers who must not know whose they are.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, Field, model_validator

from dynamics_cli.kinds.registry import KindSource
from dynamics_cli.runs.store import layout
from dynamics_cli.runs.store.sealed import FileName, check_file_name
from dynamics_cli.text import shorten

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND = "DYN_COMMAND"
"""Variable of the environment that tells processes of `dyn` the command that started them."""
DIFF = "uncommitted.diff"
"""The copy of the differences from the commit."""
MOST_BYTES = 2**20
"""Bytes of a copy; of a longer script or difference the size alone is kept."""
SECONDS = 2
"""Time for which the state of a repository is remembered: thousands of runs ask for it."""
_NOBODY = ("", "root", "localhost")
"""Names of users and hosts that tell nothing."""
_INSTALLED = ("scripts", "purelib", "stdlib")
"""Where programs of the environment are, such as pytest."""
_DIRECTORIES = re.compile(r"(^|[=:,\s])~?/(?:[^\s,:=]*/)?")


class Source(BaseModel):
    """A source that a run keeps, of a kind from outside or of a script, and the copy of it."""

    origin: FileName = Field(alias="from")
    sha256: str
    copy_: str = Field(alias="copy")

    @model_validator(mode="after")
    def _copied(self) -> Self:
        check_file_name(self.copy_.removeprefix(f"{layout.PARTS}/"))
        return self


class Code(BaseModel):
    """The entry `code` of a run, a sweep or a figure; of jobs and resumptions a part of it."""

    commit: str | None = None
    dirty: bool = False
    script: str | None = None
    command: str | None = None
    packages: dict[str, str] = {}
    kept: dict[str, Source] = {}
    left_out: dict[str, int] = {}


def code(loop: str | None = None) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Describe the code that makes a run, and return the copies of it that belong beside the run.

    The repository is that of the script, or of the working directory where a command or a notebook
    makes the run. The checkout of dyn is none: `commit` of the provenance describes it. Where no
    script is known, as for a command, `script` is missing.

    Args:
        loop: file of a training loop, which is kept with the script that calls it.

    Returns:
        The entry, as `Code` describes it, and the contents of the copies by their path below the
        directory of the run.
    """
    script, text = _script()
    sources = {} if text is None else {_file_name(script): text}
    if loop is not None and os.path.isfile(loop):  # noqa: PTH113 - not so in a notebook
        sources[_file_name(Path(loop))] = Path(loop).read_bytes()
    entry, diff = _state(repository(script.parent), time.monotonic() // SECONDS)
    if diff:
        sources[DIFF] = diff
    left_out = {name: len(data) for name, data in sources.items() if len(data) > MOST_BYTES}
    nameless = {
        name: KindSource(name, {name: _nameless(sources[name].decode(errors="replace")).encode()})
        for name in sorted(sources.keys() - left_out)
    }
    kept, copies = kept_copies(nameless)
    about = {
        **entry,
        "script": None if text is None else _file_name(script),
        "command": command_line(),
        "packages": packages(),
        "kept": kept,
        "left_out": left_out,
    }
    return {key: value for key, value in about.items() if value not in (None, {})}, copies


def kept_copies(
    sources: Mapping[str, KindSource],
) -> tuple[dict[str, dict[str, str]], dict[str, bytes]]:
    """Return the entries of sources that a run keeps, as `Source`, and the copies by their path."""
    entries = {}
    copies: dict[str, bytes] = {}
    for key, source in sources.items():
        place = f"{layout.PARTS}/{source.folder}"
        entries[key] = {"from": source.origin, "sha256": source.sha256, "copy": place}
        copies |= {f"{place}/{name}": contents for name, contents in source.files.items()}
    return entries, copies


def part_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each job of a sweep keeps of its entry, and each resumption of a run."""
    return {key: entry[key] for key in ("commit", "dirty", "command") if key in entry}


def in_words(entry: Mapping[str, Any]) -> str:
    """Return an entry in one line: the command, its script and the commit."""
    words = [entry[key] for key in ("command", "script") if entry.get(key)]
    if entry.get("commit"):
        words.append(f"commit {entry['commit']}" + " and uncommitted changes" * entry["dirty"])
    return ", ".join(words)


def command_line() -> str | None:
    """Return the command of this process, or of the process of dyn that started it; no paths.

    None in a notebook.
    """
    if (told := os.environ.get(COMMAND)) is not None:
        return told or None
    if _shell() is not None:
        return None
    words = ["python", *sys.orig_argv[1:]]
    if _is_dyn(Path(sys.argv[0])):
        words = ["dyn", *sys.argv[1:]]
    return shorten(_nameless(shlex.join(_DIRECTORIES.sub(r"\1", word) for word in words)), 2000)


@cache
def packages() -> Mapping[str, str]:
    """Return the version of every installed package by name, as the names of files tell it."""
    found = {}
    for folder in reversed(sys.path):  # what stands first is what Python imports
        for path in Path(folder or ".").glob("*-*.dist-info"):
            name, _, number = path.stem.rpartition("-")
            found[name] = number
    return dict(sorted(found.items()))


def repository(folder: Path) -> Path | None:
    """Return the git repository around a folder; None outside of one, and in dyn's own."""
    for root in (folder, *folder.parents):
        if (root / ".git").exists():
            return None if root == CHECKOUT else root
    return None


def commit(root: Path) -> str | None:
    """Return the commit checked out in `root`, `-dirty` when files differ; None without one."""
    if not (root / ".git").exists():
        return None
    told = git(root, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    return None if told is None else told.decode().strip() or None


def git(root: Path, *words: str) -> bytes | None:
    """Return what a command of git prints; None where it fails.

    It takes no optional locks: killed while it refreshes the index, git would leave its lock in a
    user's repository.
    """
    line = ["git", "--no-optional-locks", "-C", str(root), *words]
    try:
        done = subprocess.run(line, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


@lru_cache(maxsize=1)
def _state(root: Path | None, _now: float) -> tuple[dict[str, Any], bytes]:
    """Return the commit of a repository, whether files differ from it, and the differences."""
    if root is None or (told := commit(root)) is None:
        return {}, b""
    sha = told.removesuffix("-dirty")
    if told == sha:
        return {"commit": sha, "dirty": False}, b""
    plain = ("--no-color", "--no-ext-diff", "--no-textconv")
    return {"commit": sha, "dirty": True}, git(root, "diff", *plain, "HEAD") or b""


def _script() -> tuple[Path, bytes | None]:
    """Return the path of the script or notebook at work, and its source.

    The source of a notebook is its cells so far. Without a script the path is one in the working
    directory, and there is no source.
    """
    if (shell := _shell()) is not None:
        name = os.environ.get("JPY_SESSION_NAME") or shell.user_ns.get("__vsc_ipynb_file__")
        cells = [f"# In [{k}]\n{text}\n" for k, text in enumerate(shell.user_ns["In"]) if text]
        return Path.cwd() / f"{Path(name or 'notebook').stem}.py", "\n".join(cells).encode()
    path = Path(getattr(sys.modules.get("__main__"), "__file__", None) or "").absolute()
    installed = any(path.is_relative_to(sysconfig.get_path(name)) for name in _INSTALLED)
    if installed or _is_dyn(path) or not path.is_file():
        return Path.cwd() / "dyn", None
    return path, path.read_bytes()


def _file_name(path: Path) -> str:
    """Return the name of a script, as it can be the name of a copy."""
    return re.sub(r"[^\w.+-]", "_", path.name).lstrip(".") or "script"


def _is_dyn(path: Path) -> bool:
    return path.name == "dyn" or path.absolute().is_relative_to(CHECKOUT / "dynamics_cli")


def _shell() -> Any:
    """Return the shell of IPython, of a notebook too; None elsewhere."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _nameless(text: str) -> str:
    """Return a text with `~`, `USER` and `HOST` for the home directory, the user and the host."""
    home = os.path.expanduser("~")  # noqa: PTH111 - raises nothing where nobody has a home
    user = os.environ.get("USER") or Path(home).name
    if home != "/":
        text = text.replace(home, "~")
    for name, word in ((user, "USER"), (platform.node(), "HOST")):
        if name not in _NOBODY:
            text = re.sub(rf"\b{re.escape(name)}\b", word, text)
    return text.encode("utf-8", "backslashreplace").decode()
