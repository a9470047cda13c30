"""Claims over seeds."""

import math

import pytest

from dynamics_cli.reproduction.claims import (
    claim,
    claims_text,
    exactly,
    less_than,
    over_seeds,
    printed,
    summary,
    theory,
)


def claims_of(kinks):
    return [
        claim(
            "kinks", "The function has two kinks", "Figure 2", expected=exactly(2), measured=kinks
        )
    ]


@pytest.mark.parametrize(
    ("held", "seeds", "count", "verdict"),
    [
        (1, 1, "", "reproduced"),
        (0, 1, "", "not reproduced"),
        (3, 3, "3 of 3 (0.44 to 1.00)", "depends on the seed"),
        (4, 4, "4 of 4 (0.51 to 1.00)", "reproduced"),
        (3, 4, "3 of 4 (0.30 to 0.95)", "depends on the seed"),
        (10, 10, "10 of 10 (0.72 to 1.00)", "reproduced"),
        (
            9,
            10,
            "9 of 10 (0.60 to 0.98)",
            "reproduced",
        ),  # the interval of statsmodels 0.14, method "wilson"
        (8, 10, "8 of 10 (0.49 to 0.94)", "depends on the seed"),
        (2, 10, "2 of 10 (0.06 to 0.51)", "depends on the seed"),
        (1, 10, "1 of 10 (0.02 to 0.40)", "not reproduced"),
        (0, 10, "0 of 10 (0.00 to 0.28)", "not reproduced"),
    ],
)
def test_the_verdict_is_that_of_wilsons_interval(held, seeds, count, verdict):
    (kinks,) = over_seeds([claims_of(2 if k < held else 3) for k in range(seeds)])
    assert (kinks.count, kinks.verdict, kinks.as_dict()["verdict"]) == (count, verdict, verdict)


def test_a_number_of_a_released_draw_is_asked_of_the_first_seed_alone():
    claims = [
        [claim("loss", "Loss at epoch 10", "printed", printed(0.5), value)]
        for value in (0.50001, 0.7, 0.9, 0.3)
    ]
    (loss,) = over_seeds(claims)
    assert (loss.count, loss.verdict, loss.measured) == (
        "of the released draw",
        "reproduced",
        0.50001,
    )


def test_json_has_the_median_and_what_each_seed_gave():
    told = over_seeds([claims_of(3), claims_of(2), claims_of(math.nan), []])[0].as_dict()
    held = {"measured": 2.0, "verdict": "reproduced", "low": 2.0, "high": 2.0}
    lacks = {"measured": None, "verdict": "not reproduced", "low": None, "high": None}
    failed = {**held, "verdict": "not reproduced"}
    assert told["per_seed"] == [
        {**failed, "measured": 3.0},
        held,
        {**failed, "measured": None},
        lacks,
    ]
    assert (told["measured"], told["held"], told["interval"]) == (
        2.5,
        1,
        pytest.approx([0.046, 0.699], abs=1e-3),
    )
    assert "per_seed" not in over_seeds([claims_of(2)])[0].as_dict()


def test_claims_and_then_theory_are_lines_that_fit_the_width():
    law = theory("law", "It is conserved", "Eq. 1", less_than(1), 0.5)
    joined = over_seeds([[law, *claims_of(2)], [law, *claims_of(3)]])
    assert claims_text(joined, width=110).splitlines() == [
        "? The function has two kinks",
        "  Figure 2 · expected 2 · median 2.5 · depends on the seed · 1 of 2 (0.09 to 0.91)",
        "? It is conserved",
        (
            "  Eq. 1 · expected < 1 · median 0.5 · depends on the seed (theory) · 2 of 2 (0.34 to"
            " 1.00)"
        ),
    ]
    lines = claims_text(over_seeds([claims_of(3)]), width=30).splitlines()
    assert (lines[0], max(map(len, lines)) <= 30) == ("✗ The function has two kinks", True)


def test_the_summary_says_on_how_many_seeds_and_counts_theory_apart():
    def summed(*claims):
        return summary(over_seeds(claims))

    law = theory("law", "It is conserved", "Eq. 1", less_than(1), 0.5)
    broken = theory("broken", "It is conserved", "Eq. 1", less_than(1), 2)
    assert (
        summed([*claims_of(2), law, broken])
        == "1 of 1 claim reproduced on one seed, 1 of 2 of theory"
    )
    assert summed([law]) == "1 of 1 of theory reproduced"
    assert summed(*[claims_of(2)] * 4) == "1 of 1 claim reproduced on 4 seeds"
    half = [claims_of(2 + k % 2) for k in range(6)]
    assert summed(*half) == "0 of 1 claim reproduced on 6 seeds, 1 depends on the seed"
