"""YAML as configs understand it."""

import math
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli.config.errors import ConfigError
from dynamics_cli.config.reader import read_text


def read(text):
    return read_text(text, "a.yaml", Path())


def messages(text):
    try:
        problems = read(text).problems
    except ConfigError as error:
        problems = error.problems
    return [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("1e3", 1000.0),
        ("1.0e-6", 1e-6),
        ("1E5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.5e+2", -50.0),
        ("-7", -7),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("''", ""),
        ("yes", "yes"),
        ("off", "off"),
        ("1:30", "1:30"),
        ("2022-01-31", "2022-01-31"),
        ("1_000", "1_000"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("1e", "1e"),
        ("NaN", "NaN"),
    ],
)
def test_scalars(text, value):
    reading = read(f"a: {text}\n")
    assert reading.problems == []
    assert reading.data["a"] == value
    assert type(reading.data["a"]) is type(value)


def test_lines_of_keys_and_items():
    reading = read("a:\n  b: 1\n  c:\n    - 2\n    - 3\n")
    lines = {path: origin.line for path, origin in reading.origins.items()}
    assert lines == {
        (): 1,
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "c"): 3,
        ("a", "c", 0): 4,
        ("a", "c", 1): 5,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: [1, 2",
            (
                "a.yaml:1: not valid YAML: while parsing a flow sequence, expected ',' or ']', but"
                " got '<stream end>'"
            ),
        ),
        ("a: b: c", "a.yaml:1: not valid YAML: mapping values are not allowed here"),
        (
            "a:\n\tb: 1",
            (
                "a.yaml:2: not valid YAML: while scanning for the next token, found character '\\t'"
                " that cannot start any token (indent with spaces)"
            ),
        ),
        (
            "a: 1\n---\nb: 2",
            (
                "a.yaml:2: not valid YAML: expected a single document in the stream, but found"
                " another document"
            ),
        ),
        ("a: 1\nb: \0", "a.yaml:2: not valid YAML: the character #x0000 is not allowed"),
        ('a: "\\UFFFFFFFF"', "a.yaml: not valid YAML: a text holds an escape that is no character"),
        (
            "a: &x [1]\nb: *x",
            (
                "a.yaml:2: not valid YAML: anchors and aliases are not supported; `extends: FILE`"
                " shares settings between configs"
            ),
        ),
        (
            "b:\n  1: 2",
            "a.yaml:2: b: a key must be a text, not 1 (put it in quotes if it is meant)",
        ),
        (
            "? [a]\n: 2",
            "a.yaml:1: a key must be a text, not a collection (put it in quotes if it is meant)",
        ),
        ("a: !!int x", "a.yaml:1: a: 'x' cannot be read as a YAML int"),
        ("a: !!bool 1", "a.yaml:1: a: '1' cannot be read as a YAML bool"),
        (
            "a: !!set {b}",
            "a.yaml:1: a: the YAML tag '!!set' is not allowed: a config holds only plain values",
        ),
        (
            "a: !own 3",
            "a.yaml:1: a: the YAML tag '!own' is not allowed: a config holds only plain values",
        ),
        ("a: " + "[" * 100_000, "a.yaml: is nested too deeply"),
    ],
)
def test_refused(text, message):
    assert messages(text) == [message]


@given(
    st.dictionaries(st.sampled_from("abc"), st.text() | st.floats(allow_nan=False) | st.integers())
)
def test_agrees_with_the_usual_dump(value):
    # quoted, since YAML 1.1 and 1.2 differ in which plain texts are numbers
    assert read(yaml.safe_dump(value, default_style='"')).data == value
