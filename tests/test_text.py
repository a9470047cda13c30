"""Tables, numbers and JSON."""

import json
from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.text import Table, jsonable, shorten, text_table, to_json


def test_a_table_has_a_header_and_columns_flushed_left_or_right():
    text = text_table(["name", "count"], [["a", "1"], ["long name", "100"]], right=[1])
    assert text.splitlines() == [
        "name       count",
        "---------  -----",
        "a              1",
        "long name    100",
    ]


def test_long_cells_are_broken_into_lines():
    text = text_table(["statement", "n"], [["word " * 20, "1"]], width=40)
    assert max(map(len, text.splitlines())) <= 40
    assert text.count("word") == 20
    assert len(text_table(["statement", "n"], [["word " * 20, "1"]], width=110).splitlines()) == 3
    with pytest.raises(ValueError, match="a cell for each"):
        text_table(["a", "b"], [["1"]], width=40)


def test_what_is_cut_ends_with_a_whole_number():
    assert [shorten("0.125, 0.25, 0.5", most) for most in (16, 15, 12, 9)] == [
        "0.125, 0.25, 0.5",
        "0.125, 0.25,...",
        "0.125,...",
        "0.125,...",
    ]


def test_rows_need_not_have_every_column():
    table = Table([{"a": 1, "b": 0.1234567}, {"a": 2, "c": "x"}])
    assert table.columns == ["a", "b", "c"]
    assert str(table).splitlines()[2:] == ["1  0.123457  -", "2  -         x"]
    assert str(Table()) == "no rows"


def test_python_shows_the_first_rows():
    assert repr(Table([{"a": 1}])).splitlines() == ["a", "-", "1"]
    many = repr(Table({"k": k} for k in range(1000))).splitlines()
    assert len(many) == 53
    assert many[-1] == "and 950 more rows"


def test_json_of_what_json_does_not_know():
    document = {
        "a": float("nan"),
        "b": [np.float64("inf"), np.arange(2)],
        3: Path("x"),
        "c": (None, True),
    }
    expected = {"a": None, "b": [None, [0, 1]], "3": str(Path.cwd() / "x"), "c": [None, True]}
    assert jsonable(document, absolute=True) == expected
    assert json.loads(to_json(document)) == expected
