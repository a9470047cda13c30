"""From YAML text to plain data with the line of every value; nothing in a config can run code or build objects.

Scalars follow the core schema of YAML 1.2, which includes JSON: `1e-3` is a number, `yes` is a text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from dynamics_cli.config.errors import KeyPath, Mistake, key_text
from dynamics_cli.config.source import Place, Written

MAX_VALUES = 20_000
"""Values in a config, keys included; larger data belong into a file. Reading so many takes about a second."""
TOO_MANY = f"holds more than {MAX_VALUES} values; write the data to a file (dataset.kind file)"
TOO_DEEP = "is nested too deeply, or an alias stands for the value that it is part of"

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
    """PyYAML's loader with the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's registry


for _name, _pattern, _first in CORE_SCALARS:
    _Loader.add_implicit_resolver(_TAG + _name, _pattern, _first)


def read_text(text: str, file: str, directory: Path, has_lines: bool = True) -> Written:
    """Read one YAML (or JSON) document; `file` names it in messages, its relative paths belong to `directory`."""
    source = Written(None, {(): Place(file, 1 if has_lines else None, directory)})
    line = None
    try:
        json = text.lstrip().startswith("{")  # may be indented with tabs, which YAML forbids
        node = _Loader(text.replace("\t", " ") if json else text).get_single_node()
        source.data = None if node is None else _Reader(source, has_lines).convert(node, ())
    except RecursionError:
        told = TOO_DEEP
    except yaml.MarkedYAMLError as error:
        told = ", ".join(part for part in (error.context, error.problem) if part)
        told = f"not valid YAML: {told}" + (" (indent with spaces)" if "'\\t'" in told else "")
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
    except yaml.reader.ReaderError as error:
        told = f"not valid YAML: the character #x{error.character:04x} is not allowed"
        line = text[: error.position].count("\n") + 1
    except (ValueError, OverflowError):  # PyYAML converts the code of an escape such as "\UFFFFFFFF" unchecked
        told = "not valid YAML: a text holds an escape that is no character"
    else:
        return source
    return source.give_up(told, line if has_lines else None)


class _Reader:
    """Turns the nodes of one text into plain data, and notes the line of every value."""

    def __init__(self, source: Written, has_lines: bool) -> None:
        self._source, self._has_lines = source, has_lines
        self._of_text = source.origins[()]
        self._count = 0

    def _note(self, path: KeyPath, node: Node) -> None:
        self._source.origins[path] = replace(self._of_text, line=self._line(node))

    def _line(self, node: Node) -> int | None:
        return node.start_mark.line + 1 if self._has_lines else None

    def _complain(self, node: Node, path: KeyPath, message: str) -> None:
        self._source.problems.append(Mistake(self._of_text.file, self._line(node), key_text(path), message))

    def convert(self, node: Node, path: KeyPath) -> Any:
        """Return the plain data of `node`, noting the origin of every value below it."""
        self._note(path, node)
        self._count += 1
        if self._count > 2 * MAX_VALUES:  # a few lines of aliases can stand for billions
            if self._source.readable:
                self._source.refuse(path, TOO_MANY)
                self._source.readable = False
            return None
        kind = node.tag.removeprefix(_TAG)
        if isinstance(node, MappingNode) and kind == "map":
            return self._mapping(node, path)
        if isinstance(node, SequenceNode) and kind == "seq":
            return [self.convert(item, (*path, place)) for place, item in enumerate(node.value)]
        if isinstance(node, ScalarNode) and kind in ("null", "bool", "int", "float", "str"):
            return self._scalar(node, kind, path)
        tag = node.tag.replace(_TAG, "!!")
        return self._source.refuse(path, f"the YAML tag {tag!r} is not allowed: a config holds only plain values")

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode) or key_node.tag != f"{_TAG}str":
                told = key_node.value if isinstance(key_node, ScalarNode) else "a collection"
                self._complain(key_node, path, f"a key must be a text, not {told} (put it in quotes if it is meant)")
                continue
            key = key_node.value
            if key in mapping:
                self._complain(key_node, (*path, key), f"duplicate key (first on line {lines[key]})")
                continue
            if key == "<<":
                self._complain(key_node, (*path, key), "merge keys are not supported; use extends")
                continue
            lines[key] = key_node.start_mark.line + 1
            mapping[key] = self.convert(value_node, (*path, key))
            self._note((*path, key), key_node)  # the line of the key, not that of the value
        return mapping

    def _scalar(self, node: ScalarNode, kind: str, path: KeyPath) -> Any:
        try:
            return _value(node.value, kind)
        except (ValueError, KeyError):  # an explicit tag that does not fit, or a number of too many digits
            return self._source.refuse(path, f"{node.value[:60]!r} cannot be read as a YAML {kind}")


def _value(text: str, kind: str) -> Any:
    match kind:
        case "null":
            return None
        case "bool":
            return {"true": True, "false": False}[text.lower()]
        case "int":
            return int(text, 0) if text.startswith(("0x", "0o")) else int(text)
        case "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text
