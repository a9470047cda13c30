"""Ranges and verdicts."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics_cli.reproduction.catalogue import entry_of
from dynamics_cli.reproduction.claims import (
    ClaimForm,
    ClaimOverSeeds,
    Interval,
    around,
    as_compared,
    at_least,
    at_most,
    claim,
    claims_text,
    exactly,
    explained,
    less_than,
    more_than,
    most,
    near,
    over_seeds,
    presupposing,
    summary,
    theory,
    undecided,
)
from dynamics_cli.reproduction.entries import Reason
from dynamics_cli.runs.store.sealed import seal


@pytest.mark.parametrize(
    ("expected", "inside", "outside", "text"),
    [
        (around(5000), [4500, 5000, 5500], [4499.9, 5500.1], "around 5000"),
        (around(-2.0), [-2.2, -1.8], [-2.3, -1.7, 2.0], "around -2"),
        (around(0.8), [0.7201, 0.755, 0.8799], [0.71, 0.89], "around 0.8"),
        (near(0.0636, 1e-4), [0.0635, 0.0636342], [0.0634, 0.0638], "0.0636 ± 0.0001"),
        (at_least(20), [20, 36], [19.999], ">= 20"),
        (at_most(0.1), [0.1, -3.0], [0.1000001], "<= 0.1"),
        (more_than(0.99), [0.990001, 1.0], [0.99, 0.5], "> 0.99"),
        (less_than(0.01), [0.0099999], [0.01, 1.0], "< 0.01"),
        (most(), [0.500001, 1.0], [0.5, 0.4], "> 0.5"),
        (exactly(2), [2], [1, 3, 2.0000001], "2"),
        (Interval(1, 3), [1, 2, 3], [0.999, 3.001], "1 to 3"),
    ],
)
def test_a_range_holds_inside_and_not_outside(expected, inside, outside, text):
    assert all(expected.holds(value) for value in inside)
    assert not any(expected.holds(value) for value in outside)
    assert not any(expected.holds(value) for value in (math.nan, math.inf, -math.inf))
    assert str(expected) == text


def judged(document):
    """Return the verdicts that a program comes to which knows nothing but the JSON of a claim."""
    each = document.get("per_seed", [document])
    return [
        ("" if _fits(one["low"], one["high"], one["measured"]) else "not ") + "reproduced"
        for one in each
    ]


def of_file(document):
    """Return the claim that a file holds."""
    return ClaimOverSeeds.of_file(ClaimForm.model_validate(document, strict=True))


def _fits(low, high, measured):
    if measured is None or low is high is None:
        return False
    return (low is None or low <= measured) and (high is None or measured <= high)


numbers = st.floats() | st.integers(-3, 3)


@given(
    st.sampled_from(
        [around, at_least, at_most, more_than, less_than, exactly, lambda x: near(x, 0.1)]
    )
    | st.builds(lambda width: lambda x: Interval(x, x + width), st.floats(0, 3)),
    st.lists(
        st.tuples(numbers, st.sampled_from([0.0, 5e-324, -1e-12, 0.1, math.inf]) | numbers),
        min_size=1,
    ),
)
def test_claims_are_judged_again_from_their_json_alone(expecting, seeds):
    """Each seed may expect another number, close to the one measured."""
    told = [
        [make(make.__name__, "s", "t", expecting(x), x + d) for make in (claim, theory)]
        for x, d in seeds
    ]
    for one in over_seeds(told):
        document = json.loads(seal(one.as_dict()))
        assert judged(document) == [of_seed.verdict for of_seed in one.each]
        assert of_file(document).as_dict() == one.as_dict()


@pytest.mark.parametrize(
    ("measured", "low", "high", "seen"),
    [
        (None, 0.0, 1.0, "-"),
        (4.88162e-05, None, 0.01, "4.88e-05"),
        (0.499767, 0.4995, 0.5005, "0.49977"),
        (1.0, 0.999, 1.001, "1.0000"),
        (116.59, 115.565, 117.565, "116.6"),
        (-0.5, -0.51, -0.49, "-0.500"),
        (3.0, 2.0, 4.0, "3"),
        (10465.3, 9900.0, 12100.0, "10465"),
        (0.99996, None, math.nextafter(1, 0), "0.99996"),  # 1 would say that it is not below 1
        (15.0, 15.0, 15.0, "15"),
    ],
)
def test_numbers_have_the_digits_that_are_compared(measured, low, high, seen):
    assert as_compared(measured, low, high) == seen


def test_claims_that_are_not_decided_count_neither_way():
    held = claim("a", "a", "s", at_most(1.0), 0.0)
    missed = claim("b", "b", "s", at_most(1.0), 2.0)
    met = presupposing(held, "lambda <= 1", at_most(1.0), 0.5)
    unmet = presupposing(held, "lambda <= 1", at_most(1.0), 2.0)
    open_ = undecided(missed, "the preset `full` decides")
    assert (met.verdict, met.note) == ("reproduced", "lambda <= 1: <= 1 is asked for, 0.5 is given")
    asked = "lambda <= 1: <= 1 is asked for, 2 is given"
    assert (unmet.verdict, unmet.note) == ("premise not met", f"holds all the same; {asked}")
    fails = presupposing(missed, "lambda <= 1", at_most(1.0), 2.0)
    assert (fails.verdict, fails.note) == ("premise not met", f"fails; {asked}")
    for inner, outer in ((0.5, 2.0), (2.0, 0.5), (2.0, 2.0)):
        both = presupposing(presupposing(held, "a", at_most(1.0), inner), "b", at_most(1.0), outer)
        assert both.verdict == "premise not met"
        assert both.note.count("holds all the same") == 1
        assert both.note.count("is asked for") == 2
    over = over_seeds([[one.but(id=str(k)) for k, one in enumerate([held, unmet, open_])]])
    assert summary(over) == "1 of 1 claim reproduced on one seed, 1 premise not met, 1 undecided"
    assert [one.missed for one in over] == [False, False, False]
    told = claims_text(over, width=200)
    assert "– a" in told
    assert f"premise not met · holds all the same; {asked}" in told
    assert "undecided · the preset `full` decides" in told

    # the share of seeds is over those that decide
    (several,) = over_seeds([[held]] * 5 + [[unmet]] * 3)
    assert (several.count, several.verdict) == ("5 of 5 (0.57 to 1.00)", "reproduced")
    far = presupposing(held.but(measured=9.0), "lambda <= 1", at_most(1.0), 2.0)
    (mixed,) = over_seeds([[held]] * 4 + [[far]] * 6)
    assert (mixed.verdict, mixed.measured) == ("reproduced", 0.0)  # of the seeds that decide
    (never,) = over_seeds([[unmet]] * 4)
    assert (never.count, never.verdict) == ("", "premise not met")
    assert of_file(never.as_dict()) == never


def test_claims_that_are_missed_say_why():
    each = [claim("a", "a", "s", at_most(1.0), 0.0), claim("b", "b", "s", at_most(1.0), 2.0)]
    reasons = {name: Reason("our data", "they are few") for name in "ab"}
    held, failed = explained(over_seeds([each]), reasons)
    assert (held.why, failed.why) == ([], ["our data: they are few"])
    assert "measured 2 · not reproduced · our data: they are few" in claims_text(
        [failed], width=200
    )
    assert "because" not in failed.as_dict()
    assert entry_of("boursier2022-fig1-flow") == entry_of("boursier2022-fig1")
    assert entry_of("boursier2022-fig1").missed["fact-1"].cause == "paper"
    assert entry_of("nobody2030-fig1").missed == {}
