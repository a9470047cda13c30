"""From a config file or a mapping to a validated `RunConfig`, or to all that is wrong with it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from dynamics_cli._bundled import bundled_config, bundled_configs
from dynamics_cli.config.changes import mistakes_of_changes, nest_changes, written_out
from dynamics_cli.config.check import check_files, check_sections
from dynamics_cli.config.errors import ConfigError, KeyPath, Mistake
from dynamics_cli.config.explain import mistakes_in
from dynamics_cli.config.reader import Assignment, apply, read_file, read_mapping
from dynamics_cli.config.schema import CHANGES, SWEEP, Node, SweepSection, node_at
from dynamics_cli.config.source import Written
from dynamics_cli.errors import did_you_mean
from dynamics_cli.kinds import Finding, RunConfig
from dynamics_cli.kinds.base import LENIENT, RECORDED

MAX_TOLD = 50
"""Problems told of one config; of the rest only the number is."""
Source = str | os.PathLike[str] | Mapping[str, object]
"""A YAML or JSON file, or a mapping with the same content (called `<config>` in messages)."""


def config_file(name: str) -> Path:
    """Return the file that the name of a config stands for: itself, or a bundled config.

    Raises ConfigError: there is neither.
    """
    path = Path(name)
    # `Path.exists` raises for a name that is too long
    if name == "" or os.path.exists(path):  # noqa: PTH110
        return path
    if (bundled := bundled_config(name)) is not None:
        return bundled
    hint = did_you_mean(name.removesuffix(".yaml"), bundled_configs())
    if not hint:
        beside = {file.stem: str(file) for file in sorted(path.parent.glob("*.yaml"))}
        for close in get_close_matches(path.stem, beside, n=1):
            hint = f" (did you mean {beside[close]!r}?)"
    told = f"there is no such file, nor a bundled config of this name{hint}"
    raise ConfigError([Mistake(name, None, "", told)])


def load_config(
    source: Source,
    overrides: Sequence[str | Assignment] = (),
    *,
    check_files_exist: bool = True,
    lenient: bool = False,
    swept: bool = False,
    **settings: object,
) -> RunConfig:
    """Read and validate the config of one run.

    Args:
        source: the config.
        overrides: changes `section.key=value` as after `--set`; the values are YAML.
        check_files_exist: whether files that the config names must be there.
        lenient: whether sections stay plain dictionaries where their kinds are not loaded, as in a
            run of others.
        swept: whether this is one of the runs of a sweep, so that a section `sweep` says nothing
            here.
        settings: top-level keys to replace last, e.g. `seed=3, device="cpu"`; None leaves the key
            as it is.

    Returns:
        The config with every default filled in. Paths in it are absolute: those in a file (also in
        one that is extended) are taken relative to that file, others relative to the working
        directory.

    Raises:
        ConfigError: with all problems at once, each with its file, line and key.
    """
    plain = written_config(source, overrides, **settings)
    if plain.data.pop(SWEEP, None) is not None and not swept:
        plain.refuse((SWEEP,), _many_runs(source, overrides))
    if plain.data.get(RECORDED) and not lenient:
        told = "a training loop outside of dyn made this run: it can be read, not trained"
        raise ConfigError([plain.problem((RECORDED,), told)])
    _make_all_paths_absolute(plain)
    return _validated(plain, check_files_exist, lenient)


def _many_runs(source: Source, overrides: Sequence[str | Assignment]) -> str:
    command = ["dyn", "sweep"]
    if not isinstance(source, Mapping):
        command.append(os.fspath(source))
    command += [f"--set={text}" for text in overrides if isinstance(text, str)]
    return (
        f"describes many runs: `{shlex.join(command)}` trains them; `--set sweep=null` takes the"
        " config without it"
    )


def written_config(
    source: Source, overrides: Sequence[str | Assignment] = (), **settings: object
) -> Written:
    """Return a config as it is written, with what it extends and all changes, before validation.

    Raises:
        ConfigError: it cannot be read.
    """
    if isinstance(source, Mapping):
        plain = read_mapping(source)
    else:
        plain = read_file(source)
    nest_changes(plain)
    apply(plain, overrides, settings)
    nest_changes(plain)
    return plain


def with_change(source: Source, at: int, overrides: Sequence[str]) -> RunConfig:
    """Return a config that is changed on the way, at a state, by settings as after `--set`.

    Raises:
        ConfigError: it cannot be read, or the change cannot be.
    """
    data = self_contained(source)
    changes = data.get(CHANGES) or []
    data[CHANGES] = [*changes, {"at": at}]
    return load_config(data, [f"{CHANGES}.{len(changes)}.{change}" for change in overrides])


def self_contained(
    source: Source, overrides: Sequence[str] = (), **settings: object
) -> dict[str, Any]:
    """Return a config as it is written, but its section `sweep`, with absolute names of files.

    Raises:
        ConfigError: it cannot be read.
    """
    plain = written_config(source, overrides, **settings)
    plain.data.pop(SWEEP, None)
    _make_all_paths_absolute(plain)
    data: dict[str, Any] = plain.data
    return data


def load_sweep(
    source: Source, overrides: Sequence[str] = ()
) -> tuple[SweepSection | None, Written]:
    """Return the section `sweep` of a config, or None, and the config as it is written.

    Raises:
        ConfigError: the section is not valid.
    """
    plain = written_config(source, overrides)
    if (data := plain.data.get(SWEEP)) is None:
        return None, plain
    try:
        return TypeAdapter(dict[str, SweepSection]).validate_python({SWEEP: data})[SWEEP], plain
    except ValidationError as error:
        raise ConfigError(_in_order([*plain.problems, *mistakes_in(error, plain)])) from error


def _make_all_paths_absolute(source: Written) -> None:
    """Replace the names of files in a config, and in what is changed on the way."""
    _make_paths_absolute(source, node_at((), source.data))
    for k, following in written_out(source):
        node = node_at(("dataset",), following.data)
        given = source.data[CHANGES][k].get("dataset")
        if isinstance(given, dict):
            _make_paths_absolute(source, replace(node, value=given), (CHANGES, k, "dataset"))


def _make_paths_absolute(source: Written, node: Node, path: KeyPath = ()) -> None:
    """Replace the names of files at `path`, and in sections below, by absolute names."""
    items: Iterable[tuple[str | int, object]] = enumerate(node.value)
    if isinstance(node.value, dict):
        items = node.value.items()
    for key, value in items:
        place = (*path, key)
        if isinstance(value, str):
            if key in getattr(node.section, "file_keys", ()):
                node.value[key] = os.path.normpath(source.origin(place).directory / value)
        elif isinstance(value, dict | list):
            inside = node.below(key)
            if inside.choice is not None or inside.section is not None:
                _make_paths_absolute(source, inside, place)


def _validated(source: Written, check_files_exist: bool, lenient: bool) -> RunConfig:
    """Return the config.

    Raises:
        ConfigError: with everything that is wrong with it.
    """
    config = None
    problems = list(source.problems)
    context = {LENIENT: lenient}
    try:
        config = RunConfig.model_validate(source.data, context=context)
        sections = dict(config)
    except ValidationError as error:
        problems += mistakes_in(error, source)
        sections = _valid_sections(source.data, context)

    findings: list[Finding] = []
    if not lenient:
        findings += check_sections(sections)
    if check_files_exist:
        findings += check_files(sections)
    problems += [
        source.problem(path, message) for path, message in findings if not source.is_broken(path)
    ]
    if config is not None and not problems and not lenient:
        problems += mistakes_of_changes(source, config, check_files_exist=check_files_exist)
    if config is None or problems:
        raise ConfigError(_in_order(problems))
    return config


def _valid_sections(data: Mapping[str, Any], context: dict[str, bool]) -> dict[str, object]:
    """Return the sections that are right by themselves, which are checked further."""
    sections = {}
    for name, field in RunConfig.model_fields.items():
        if field.exclude:
            continue
        limited: Any = Annotated[field.annotation, field]
        with suppress(ValidationError):  # told by the validation of the whole
            sections[name] = TypeAdapter(limited).validate_python(
                data.get(name, {}), context=context
            )
    return sections


def _in_order(problems: Iterable[Mistake]) -> list[Mistake]:
    """Sort by line within each file, files as they first appear; of many keep the first."""
    problems = list(dict.fromkeys(problems))
    files = list(dict.fromkeys(problem.file for problem in problems))
    ordered = sorted(problems, key=lambda problem: (files.index(problem.file), problem.line or 0))
    if len(ordered) <= MAX_TOLD:
        return ordered
    more = Mistake(ordered[MAX_TOLD].file, None, "", f"and {len(ordered) - MAX_TOLD} more problems")
    return [*ordered[:MAX_TOLD], more]
