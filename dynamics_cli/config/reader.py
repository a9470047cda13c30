"""From YAML texts, files and mappings to plain data that know their origins.

Nothing in a config can run code.

Scalars follow the core schema of YAML 1.2, which includes JSON: `1e-3` is a number, `yes` is a
text. Files bring what they extend. Before anything is validated, `--set section.key=value` and
settings change these data.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from dynamics_cli._bundled import bundled_config
from dynamics_cli.config.errors import ConfigError, KeyPath, Mistake, key_text
from dynamics_cli.config.source import Place, Written, choosing_first, merge
from dynamics_cli.config.text import show
from dynamics_cli.errors import UsageError
from dynamics_cli.text import jsonable, walked

MAPPING = "<config>"
"""The file name of a config that is a mapping."""
ALIASES = "anchors and aliases are not supported; `extends: FILE` shares settings between configs"
MAX_BYTES = 2**20
"""Size of the largest config file."""
NEEDED = "name, dataset, architecture, initialization, loss and optimizer"

# -- YAML

_TAG = "tag:yaml.org,2002:"
_FLOAT = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_INT = re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$")
CORE_SCALARS = (  # the first match wins
    ("null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    ("int", _INT, list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
)


class _Loader(yaml.SafeLoader):
    """PyYAML's loader with the scalars of YAML 1.2; aliases, perhaps billions, are refused."""

    # PyYAML's registry
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        """Return the next node of the text."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(None, None, ALIASES, mark)
        node: Node | None = super().compose_node(parent, index)
        return node


for _name, _pattern, _first in CORE_SCALARS:
    _Loader.add_implicit_resolver(_TAG + _name, _pattern, _first)


def read_text(text: str, file: str, directory: Path) -> Written:
    """Read a YAML (or JSON) document, called `file` in messages; `directory` has its files.

    Raises:
        ConfigError: it is no valid YAML.
    """
    source = Written(None, {(): Place(file, 1, directory)})
    line = None
    if text.lstrip().startswith("{"):
        text = text.replace("\t", " ")  # JSON may be indented with tabs, which YAML forbids
    try:
        node = _Loader(text).get_single_node()
        if node is not None:
            source.data = _converted(node, (), source)
        return source
    except RecursionError:
        told = "is nested too deeply"
    except yaml.MarkedYAMLError as error:
        told = "not valid YAML: " + ", ".join(filter(None, (error.context, error.problem)))
        if "'\\t'" in told:
            told += " (indent with spaces)"
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            line = mark.line + 1
    except yaml.reader.ReaderError as error:
        told = f"not valid YAML: the character #x{error.character:04x} is not allowed"
        line = text[: error.position].count("\n") + 1
    except (ValueError, OverflowError):
        # PyYAML converts the code of an escape such as "\UFFFFFFFF" unchecked
        told = "not valid YAML: a text holds an escape that is no character"
    raise ConfigError([Mistake(file, line, "", told)])


def read_value(text: str, option: str, key: str) -> Any:
    """Read the value of a setting that was given after an option.

    Raises:
        ConfigError: it is no valid YAML, or no plain data.
    """
    try:
        source = read_text(text, option, Path.cwd())
        problems = source.problems
    except ConfigError as error:
        problems = error.problems
    if problems:
        raise ConfigError(
            [
                Mistake(option, None, f"{key}.{problem.key}".strip("."), problem.message)
                for problem in problems
            ]
        )
    return source.data


def _converted(node: Node, path: KeyPath, source: Written) -> Any:
    """Return the plain data of a node, noting the origin of every value below it."""
    kind = node.tag.removeprefix(_TAG)
    if isinstance(node, MappingNode) and kind == "map":
        return _mapping(node, path, source)
    if isinstance(node, SequenceNode) and kind == "seq":
        items = []
        for place, item in enumerate(node.value):
            source.note((*path, place), item.start_mark.line + 1)
            items.append(_converted(item, (*path, place), source))
        return items
    if isinstance(node, ScalarNode) and kind in ("null", "bool", "int", "float", "str"):
        try:
            return _scalar(node.value, kind)
        except (ValueError, KeyError):
            # an explicit tag that does not fit, or a number of too many digits
            return source.refuse(path, f"{node.value[:60]!r} cannot be read as a YAML {kind}")
    tag = node.tag.replace(_TAG, "!!")
    return source.refuse(
        path, f"the YAML tag {tag!r} is not allowed: a config holds only plain values"
    )


def _mapping(node: MappingNode, path: KeyPath, source: Written) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    file = source.origins[()].file
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = key_node.value
        if not isinstance(key_node, ScalarNode):
            key = "a collection"
        if not isinstance(key_node, ScalarNode) or key_node.tag != f"{_TAG}str":
            told = f"a key must be a text, not {key} (put it in quotes if it is meant)"
            source.problems.append(Mistake(file, line, key_text(path), told))
        elif key in mapping:
            told = f"duplicate key (first on line {source.origins[*path, key].line})"
            source.problems.append(Mistake(file, line, key_text((*path, key)), told))
        else:
            source.note((*path, key), line)  # the line of the key, not that of the value
            mapping[key] = _converted(value_node, (*path, key), source)
    return mapping


def _scalar(text: str, kind: str) -> Any:
    match kind:
        case "null":
            return None
        case "bool":
            return {"true": True, "false": False}[text.lower()]
        case "int" if text.startswith(("0x", "0o")):
            return int(text, 0)
        case "int":
            return int(text)
        case "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


# -- files and mappings


def read_file(path: str | os.PathLike[str], chain: Sequence[str] = ()) -> Written:
    """Read a config file and what it extends; `chain` holds the files that led here.

    Raises:
        ConfigError: a file cannot be read; nothing else is validated.
    """
    path = Path(path)
    line = None
    try:
        if path.is_fifo() and Path("/dev") not in path.parents:  # where shells put what they pipe
            raise ValueError("it is a pipe, not a regular file")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(
                f"it holds more than {MAX_BYTES} bytes; write the data to a file of their own"
            )
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        told = "there is no such file"
    except IsADirectoryError:
        told = "is a directory, not a config file"
    except UnicodeDecodeError as error:
        told = f"is not UTF-8 text (byte 0x{error.object[error.start]:02x})"
        line = error.object[: error.start].count(b"\n") + 1
    except (OSError, ValueError) as error:  # ValueError: too large, or a name that no file can have
        told = f"cannot be read: {getattr(error, 'strerror', error)}"
    else:
        source = read_text(text, str(path), path.absolute().parent)
        if isinstance(source.data, dict):
            return _with_parents(source, [*chain, os.path.realpath(path)])
        if source.problems:
            raise ConfigError(source.problems)
        told = f"is empty; needed are {NEEDED}"
        if source.data is not None:
            told = f"must be a mapping of {NEEDED}, not {show(source.data)}"
            line = 1
    raise ConfigError([Mistake(str(path), line, "", told)])


def _with_parents(source: Written, chain: Sequence[str]) -> Written:
    """Merge `source` over what it extends, unless that is in the `chain`."""
    if "extends" not in source.data:
        return source
    extends = source.data.pop("extends")
    if source.is_broken(("extends",)):
        return source
    wrong = f"must be the path of one config file (a text), not {show(extends)}"
    if isinstance(extends, str) and extends:
        origin = source.origin(("extends",))
        named = Path(extends)
        if origin.line is not None:  # in a file: shown as the file was named, relative or absolute
            named = Path(origin.file).parent / extends
        # `Path.exists` raises for a name that no file can have
        if not os.path.exists(named):  # noqa: PTH110
            named = bundled_config(extends) or named
        if not os.path.exists(named):  # noqa: PTH110
            wrong = f"there is no file {named}, nor a bundled config of this name"
        elif os.path.realpath(named) in chain:
            wrong = f"extending {named} would go round in a circle"
        else:
            return merge(read_file(named, chain), source)
    raise ConfigError([*source.problems, source.problem(("extends",), wrong)])


def read_mapping(mapping: Mapping[str, object]) -> Written:
    """Take a config from a mapping; relative paths in it are relative to the working directory.

    Tuples and arrays (anything with `tolist`) become lists, paths become texts.
    """
    return _with_parents(
        Written(walked(mapping, _text_of_path), {(): Place(MAPPING, None, Path.cwd())}), []
    )


def _text_of_path(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return value


# -- changes

SET = "--set"
SETTINGS = "<settings>"
Overrides = Mapping[str, Any] | Iterable[str]
"""Changes of settings: `{"seed": 3, "optimizer.lr": 0.1}` or `["seed=3", "optimizer.lr=0.1"]`."""


def override_texts(overrides: Overrides) -> list[str]:
    """Return changes of settings as `--set` takes them: `key=value`, the value as YAML."""
    if isinstance(overrides, str):
        raise UsageError(f"overrides are a mapping or a list, not the text {overrides!r}")
    if not isinstance(overrides, Mapping):
        return list(overrides)
    # JSON is YAML, and leaves no text that could be read as something else
    return [
        f"{key}={json.dumps(jsonable(value), ensure_ascii=False)}"
        for key, value in overrides.items()
    ]


class Assignment(NamedTuple):
    """A change whose value has been read already."""

    path: tuple[str, ...]
    value: Any
    origin: Place


def apply(
    source: Written, overrides: Iterable[str | Assignment], settings: Mapping[str, object]
) -> None:
    """Apply each `key=value` to `source`, the value read as YAML, then `settings`.

    Problems are added to `source`.

    A mapping replaces its section. Kinds are set first, whatever the order: setting one keeps the
    keys beside it that the new kind knows and drops the others, but none that another override
    sets. Paths in values are relative to the working directory. Settings replace top-level keys;
    None means that one was not given.
    """
    changes = []
    for change in overrides:
        try:
            changes.append(_assignment(change))
        except ConfigError as error:
            source.problems += error.problems
    for path, value, origin in sorted(changes, key=lambda change: choosing_first(change.path[-1])):
        source.assign(path, deepcopy(value), origin)
    for key, value in settings.items():
        if value is not None:
            source.assign((key,), walked(value, _text_of_path), Place(SETTINGS, None, Path.cwd()))


def _assignment(change: str | Assignment) -> Assignment:
    if isinstance(change, Assignment):
        return change
    key, equals, written = change.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        raise ConfigError(
            [Mistake(SET, None, "", f"{change!r} must have the form section.key=value")]
        )
    value = read_value(written, SET, ".".join(path))
    return Assignment(path, value, Place(SET, None, Path.cwd()))
