"""YAML as configs understand it."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli._bundled import bundled_configs
from dynamics_cli.config.nodes import LARGE, TOO_MANY, read_text
from dynamics_cli.config.source import Written


def read(text: str) -> Written:
    return read_text(text, "a.yaml", Path())


def messages(text: str) -> list[str]:
    return [str(problem) for problem in read(text).problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3), ("1e3", 1000.0), ("1.0e-6", 1e-6), ("1E5", 1e5), (".5", 0.5), ("5.", 5.0), ("-.5e+2", -50.0),
        ("-7", -7), ("010", 10), ("0x1F", 31), ("0o17", 15), (".inf", math.inf), ("-.INF", -math.inf), ("true", True),
        ("False", False), ("~", None), ("null", None), ("''", ""), ("yes", "yes"), ("off", "off"), ("1:30", "1:30"),
        ("2022-01-31", "2022-01-31"), ("1_000", "1_000"), ("'1'", "1"), ("!!str 1", "1"), ("!!float 1", 1.0),
        ("1e", "1e"), ("NaN", "NaN"),
    ],
)  # fmt: skip
def test_scalars(text: str, value: Any) -> None:
    reading = read(f"a: {text}\n")
    assert reading.problems == []
    assert reading.data["a"] == value
    assert type(reading.data["a"]) is type(value)


def test_long_texts_are_read_as_short_ones() -> None:
    """LibYAML reads the second of each: the same values at the same lines."""
    for path in bundled_configs().values():
        text = path.read_text(encoding="utf-8")
        short, long = read(text), read(text + "#" * LARGE)
        assert not short.problems
        assert (long.data, long.origins) == (short.data, short.origins)
    last = LARGE // 5
    (problem,) = read("- 1e3\n" * last + "- [1\n").problems
    assert problem.line == last + 2
    assert problem.message.startswith("not valid YAML: while parsing a flow sequence, did not find expected ',' or ']'")
    (problem,) = read("- 1e3\n" * last + "- \0\n").problems
    assert (problem.line, problem.message) == (last + 1, "not valid YAML: the character #x0000 is not allowed")


def test_nan() -> None:
    assert math.isnan(read("a: .nan").data["a"])


def test_lines_of_keys_and_items() -> None:
    reading = read("a:\n  b: 1\n  c:\n    - 2\n    - 3\n")
    lines = {path: origin.line for path, origin in reading.origins.items()}
    assert lines == {(): 1, ("a",): 1, ("a", "b"): 2, ("a", "c"): 3, ("a", "c", 0): 4, ("a", "c", 1): 5}


def test_aliases_stand_for_their_values() -> None:
    assert read("a: &x [1, 2]\nb: *x\nc: [*x, *x]\n").data == {"a": [1, 2], "b": [1, 2], "c": [[1, 2], [1, 2]]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2",
         "a.yaml:1: not valid YAML: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'"),
        ("a: b: c", "a.yaml:1: not valid YAML: mapping values are not allowed here"),
        (
            "a:\n\tb: 1",
            "a.yaml:2: not valid YAML: while scanning for the next token, found character '\\t' that cannot start "
            "any token (indent with spaces)",
        ),
        ("a: 1\n---\nb: 2",
         "a.yaml:2: not valid YAML: expected a single document in the stream, but found another document"),
        ("a: 1\nb: \0", "a.yaml:2: not valid YAML: the character #x0000 is not allowed"),
        ('a: "\\UFFFFFFFF"', "a.yaml: not valid YAML: a text holds an escape that is no character"),
        ("a: *x", "a.yaml:1: not valid YAML: found undefined alias 'x'"),
        ("a: &x [*x]", "a.yaml:1: a[0]: an alias stands for the value that it is part of"),
        ("b:\n  1: 2", "a.yaml:2: b: a key must be a text, not 1 (put it in quotes if it is meant)"),
        ("? [a]\n: 2", "a.yaml:1: a key must be a text, not a collection (put it in quotes if it is meant)"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "a.yaml:3: c.<<: merge keys are not supported; use extends"),
        ("a: !!int x", "a.yaml:1: a: 'x' cannot be read as a YAML int"),
        ("a: !!bool 1", "a.yaml:1: a: '1' cannot be read as a YAML bool"),
        ("a: !!set {b}", "a.yaml:1: a: the YAML tag '!!set' is not allowed: a config holds only plain values"),
        ("a: !own 3", "a.yaml:1: a: the YAML tag '!own' is not allowed: a config holds only plain values"),
        ("a: " + "[" * 21 + "]" * 21, "a.yaml:1: is nested more than 20 levels deep"),
    ],
)  # fmt: skip
def test_refused(text: str, message: str) -> None:
    assert messages(text) == [message]


def test_an_integer_of_many_digits() -> None:
    assert messages("a: " + "9" * 5000) == [f"a.yaml:1: a: '{'9' * 60}' cannot be read as a YAML int"]


def test_nesting_that_would_exhaust_the_stack() -> None:
    assert messages("[" * 100_000) == ["a.yaml:1: is nested more than 20 levels deep"]
    chain = "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 3000))
    assert messages(chain)[0].endswith("is nested more than 20 levels deep")


def test_alias_bomb() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10))
    start = time.monotonic()
    reading = read(bomb)
    assert time.monotonic() - start < 20
    assert not reading.readable
    (problem,) = reading.problems
    assert problem.message == TOO_MANY


@given(st.text())
def test_any_text_is_read_or_answered(text: str) -> None:
    reading = read(text)
    assert reading.readable or reading.problems


@given(st.text(alphabet="[]{}:,-?&*!|>'\"#%@` \n\tab1\\x.e"))
def test_anything_like_yaml_is_read_or_answered(text: str) -> None:
    reading = read(text)
    assert reading.readable or reading.problems


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.text(max_size=20).filter(lambda key: key != "<<"), below, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), plain))
def test_json_reads_as_itself(value: dict[str, Any]) -> None:
    text = json.dumps(value).replace("-Infinity", "-.inf").replace("Infinity", ".inf")
    if "inf" not in text:
        reading = read(text)
        assert reading.problems == []
        assert reading.data == json.loads(text)


@given(st.dictionaries(st.sampled_from("abc"), st.text() | st.floats(allow_nan=False) | st.integers()))
def test_agrees_with_the_usual_dump(value: dict[str, Any]) -> None:
    # quoted, since YAML 1.1 and 1.2 differ in which plain texts are numbers
    assert read(yaml.safe_dump(value, default_style='"')).data == value
