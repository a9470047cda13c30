"""From a config file or a mapping to a validated `RunConfig`, or to everything that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from dynamics_cli.config.checks import check_sections
from dynamics_cli.config.errors import ConfigError, Problem
from dynamics_cli.config.explain import explain
from dynamics_cli.config.files import check_files
from dynamics_cli.config.nodes import MAX_VALUES, TOO_MANY
from dynamics_cli.config.overrides import apply, apply_settings
from dynamics_cli.config.reader import read_file, read_mapping
from dynamics_cli.config.run import RunConfig
from dynamics_cli.config.source import Source

MAX_TOLD = 250
"""Problems told of one config; of the rest only the number is."""
_FILE_KEYS = (("dataset", "path"), ("dataset", "test_path"), ("initialization", "path"))


def load_config(
    source: str | os.PathLike[str] | Mapping[str, object],
    overrides: Sequence[str] = (),
    *,
    check_files_exist: bool = True,
    **settings: object,
) -> RunConfig:
    """Read and validate the config of one run.

    Args:
        source: a YAML or JSON file, or a mapping with the same content (called `<config>` in messages).
        overrides: changes `section.key=value` as after `--set`; the values are YAML.
        check_files_exist: whether files that the config names must be there.
        settings: top-level keys to replace last, e.g. `seed=3, device="cpu"`; None leaves the key as it is.

    Returns:
        The config with every default filled in. Paths in it are absolute: those in a file (also in one that is
        extended) are taken relative to that file, others relative to the working directory.

    Raises:
        ConfigError: with all problems at once, each with its file, line and key.
    """
    plain = read_mapping(source) if isinstance(source, Mapping) else read_file(source)
    if not plain.readable:
        raise ConfigError(_in_order(plain.problems))
    apply(plain, overrides)
    apply_settings(plain, settings)
    if _count(plain.data) > MAX_VALUES:
        raise ConfigError([plain.problem((), TOO_MANY)])
    _make_paths_absolute(plain)
    config, problems = _validate(plain, check_files_exist)
    if config is None or problems:
        raise ConfigError(_in_order(problems))
    return config


def _count(value: object) -> int:
    """Return the number of values in plain data, keys included."""
    match value:
        case dict():
            return 1 + len(value) + sum(map(_count, value.values()))
        case list():
            return 1 + sum(map(_count, value))
    return 1


def _make_paths_absolute(source: Source) -> None:
    for section, key in _FILE_KEYS:
        keys = source.data.get(section)
        if isinstance(keys, dict) and isinstance(written := keys.get(key), str):
            keys[key] = os.path.normpath(source.origin((section, key)).directory / written)


def _validate(source: Source, check_files_exist: bool) -> tuple[RunConfig | None, list[Problem]]:
    """Return the config, if each value is right, and everything that is wrong."""
    config, problems = None, list(source.problems)
    try:
        config = RunConfig.model_validate(source.data)
    except ValidationError as error:
        problems += explain(error, source)
    sections = _valid_sections(source.data) if config is None else dict(config)
    findings = [*check_sections(sections), *(check_files(sections) if check_files_exist else ())]
    problems += [source.problem(path, message) for path, message in findings if not source.is_broken(path)]
    return config, problems


def _valid_sections(data: Mapping[str, Any]) -> dict[str, object]:
    """Return the sections that are right by themselves, so that they are checked further even if others are wrong."""
    sections = {}
    for name, adapter in _adapters().items():
        try:
            sections[name] = adapter.validate_python(data.get(name, {}))
        except ValidationError:
            continue  # told by the validation of the whole
    return sections


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    fields = RunConfig.model_fields.items()
    # Annotated puts the field's discriminator and limits back on its type
    return {name: TypeAdapter[Any](Annotated[field.annotation, field]) for name, field in fields}  # type: ignore[arg-type]


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Sort by line within each file, files in the order in which they first appear; of many only the first are kept."""
    problems = list(dict.fromkeys(problems))
    files = list(dict.fromkeys(problem.file for problem in problems))
    ordered = sorted(problems, key=lambda problem: (files.index(problem.file), problem.line or 0))
    if len(ordered) <= MAX_TOLD:
        return ordered
    rest = Problem(ordered[MAX_TOLD].file, None, "", f"and {len(ordered) - MAX_TOLD} more problems")
    return [*ordered[:MAX_TOLD], rest]
