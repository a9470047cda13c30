"""What may stand for a config or a run on the command line."""

from __future__ import annotations

import difflib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from dynamics_cli.errors import RunError, did_you_mean

if TYPE_CHECKING:
    from dynamics_cli.config import RunConfig
    from dynamics_cli.runs import Run

SUFFIXES = (".yaml", ".yml", ".json")


def bundled_configs() -> dict[str, Path]:
    """Return the papers' configs by name, e.g. `boursier2022/orthogonal`."""
    from dynamics_cli._bundled import CONFIGS

    files = sorted(CONFIGS.glob("*/*.yaml"))
    return {file.relative_to(CONFIGS).with_suffix("").as_posix(): file for file in files}


def is_there(path: Path) -> bool:
    """Whether something has this name; what cannot be a name, such as one that is too long, is not there."""
    return os.path.exists(path)  # noqa: PTH110 - `Path.exists` raises for a name that is too long


def config_file(text: str) -> Path:
    """Return the file that a CONFIG argument stands for: the file itself, or a bundled config by its name.

    A bundled config is also found as `configs/<name>.yaml`, the way its own first lines write it.

    Raises:
        ConfigError: there is neither.

    """
    path = Path(text)
    if is_there(path) or text == "":
        return path
    known = bundled_configs()
    name = text.removeprefix("./").removeprefix("configs/").removesuffix(".yaml")
    if name in known:
        return known[name]
    from dynamics_cli.config import ConfigError, Problem

    hint = did_you_mean(name, known) or _similar_file(path)
    raise ConfigError([Problem(text, None, "", f"there is no such file, nor a bundled config of this name{hint}")])


def read_config(text: str, overrides: tuple[str, ...] = (), **settings: str | int | None) -> RunConfig:
    """Load the config that a CONFIG argument stands for; settings are those of options such as `--seed`.

    Raises:
        ConfigError: with all problems at once.

    """
    from dynamics_cli.config import ConfigError, load_config
    from dynamics_cli.config.overrides import SETTINGS

    try:
        return load_config(config_file(text), overrides, check_files_exist=True, **settings)
    except ConfigError as error:
        problems = [replace(p, file=f"--{p.key}", key="") if p.file == SETTINGS else p for p in error.problems]
        raise ConfigError(problems) from error


def run_directory(text: str) -> Path:
    """Return the directory that a RUN argument stands for: a path, or the (start of the) name of one of the runs kept.

    Raises:
        RunError: there is no such run, or the start of the name fits several.

    """
    from dynamics_cli.runs.store.layout import runs_root

    path, root = Path(text), runs_root()
    if is_there(path):
        return path
    names = run_names()
    fitting = [name for name in names if name.startswith(text)] if text not in names else [text]
    if len(fitting) == 1:
        return root / fitting[0]
    if fitting:
        raise RunError(f"{text!r} can be several runs below {root}: {', '.join(fitting)}")
    raise RunError(f"there is no run {text}, neither as a path nor below {root}{did_you_mean(text, names)}")


def open_run(text: str) -> Run:
    """Open the run that a RUN argument stands for; `DIR:k` is replica k of a directory that holds several.

    Raises:
        RunError: there is no such run; the message says what there is.

    """
    from dynamics_cli.runs import load_run
    from dynamics_cli.runs.replica import ReplicaSet

    name, colon, number = text.rpartition(":")
    if colon and number.isdecimal() and len(number) < 10 and not is_there(Path(text)):
        replicas = ReplicaSet(run_directory(name))
        if int(number) >= len(replicas):
            raise RunError(f"{name} holds replicas 0 to {len(replicas) - 1}, none with number {number}")
        replica: Run = replicas[int(number)]
        return replica
    run = load_run(run_directory(text))
    if "replicas" in run.info:
        last = len(run.info["replicas"]) - 1
        raise RunError(f"{run.path} holds several runs trained together: name one, {text}:0 to {text}:{last}")
    return run


def run_names() -> list[str]:
    """Return the names of the directories below the root of all runs."""
    from dynamics_cli.runs.store.layout import runs_root

    root = runs_root()
    return sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def complete_config(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a CONFIG: bundled names, and files by the shell."""
    names = [CompletionItem(name) for name in bundled_configs() if incomplete and name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a RUN: names of runs kept, and directories by the shell."""
    names = [CompletionItem(name) for name in run_names() if incomplete and name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="dir")]


def _similar_file(path: Path) -> str:
    """Return a hint at a config beside `path` whose name is similar; endings, which are all alike, do not count."""
    try:
        beside = {file.stem: file for file in sorted(path.parent.iterdir()) if file.suffix in SUFFIXES}
    except (OSError, ValueError):  # ValueError: a name with a null character
        return ""
    close = difflib.get_close_matches(path.stem, beside, n=1)
    return f" (did you mean {str(beside[close[0]])!r}?)" if close else ""
