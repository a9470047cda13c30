"""What `dyn new` writes: small commented files that run as they are, each with a test.

`cli/new.py` calls `new_kind` and `new_paper`. The texts are in `kinds/` and `paper/`; begin with
`paper/fig1.py.txt`.
"""

from __future__ import annotations

import keyword
import os
import platform
import re
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

from dynamics_cli.errors import RunError, UsageError, did_you_mean
from dynamics_cli.kinds import all_kinds
from dynamics_cli.kinds.registry import SECTIONS
from dynamics_cli.runs.code import packages
from dynamics_cli.version import __version__

PAPER = (
    "pyproject.toml",
    "README.md",
    "CHECKLIST.md",
    "LICENSE",
    "CITATION.cff",
    ".gitignore",
    ".github/workflows/reproduce.yml",
    "tests/test_KEY.py",
    "KEY/__init__.py",
    "KEY/fig1.py",
    "KEY/NOTES.md",
    "KEY/configs/two_points.yaml",
)
"""Files of the repository of a new paper; KEY in names and contents becomes its key."""


def new_kind(section: str, name: str, folder: Path) -> list[Path]:
    """Write a kind of a section, a config that uses it and a test; return their paths.

    Raises:
        UsageError: there is no such section, the name is no Python name or taken, or a file is
            there already.
        RunError: a file cannot be written.
    """
    if section not in SECTIONS:
        raise UsageError(
            f"no section {section!r}{did_you_mean(section, SECTIONS)}; there are"
            f" {', '.join(SECTIONS)}"
        )
    _check_name(name)
    if name in all_kinds(section):
        raise UsageError(f"{section}.kind {name!r} is there already; take another name")
    texts = {
        f"{name}.py": _template(f"kinds/{section}.py"),
        f"{name}.yaml": _template(f"kinds/{section}.yaml"),
        f"test_{name}.py": _template("kinds/test.py") + _template(f"kinds/test_{section}.py"),
    }
    return _write(folder, {file: _filled(text, name) for file, text in texts.items()})


def new_paper(key: str, folder: Path) -> list[Path]:
    """Write a repository of a paper with one figure into `folder/key`; return the paths.

    Its constraints are the versions that are installed here.

    Raises:
        UsageError: the key is no Python name, or a file is there already.
        RunError: a file cannot be written.
    """
    _check_name(key)
    texts = {name.replace("KEY", key): _filled(_template(f"paper/{name}"), key) for name in PAPER}
    # the build of a version, such as `+cpu`, is not to be had everywhere
    pins = (f"{name}=={number.partition('+')[0]}\n" for name, number in packages().items())
    return _write(folder / key, {**texts, "constraints.txt": "".join(pins)})


def _check_name(name: str) -> None:
    if not re.fullmatch("[a-z][a-z0-9_]{0,59}", name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name[:80]!r} must be a name in at most 60 small letters, digits and underscores:"
            " my_kind"
        )


def _template(name: str) -> str:
    """Return a template; there is nothing more to test of most sections."""
    file = files(__name__) / f"{name}.txt"
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _filled(text: str, name: str) -> str:
    major, minor, _ = platform.python_version_tuple()
    words = {
        "CLASS": "".join(part.capitalize() for part in name.split("_")),
        "VERSION": __version__,
        "PYTHON": f"{major}.{minor}",
        "KEY": name,
    }
    for word, put in words.items():
        text = text.replace(word, put)
    return text


def _write(folder: Path, texts: dict[str, str]) -> list[Path]:
    paths = [folder / name for name in texts]
    for path in paths:
        if os.path.lexists(path):  # a link too: dyn does not write through it
            raise UsageError(f"{path} is there already; nothing was written")
    written = []
    try:
        for path, text in zip(paths, texts.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:  # so that the command can be given again
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise RunError(f"{folder}: nothing was written ({error.strerror})") from error
    return paths
