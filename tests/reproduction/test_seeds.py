"""Claims over seeds."""

from __future__ import annotations

import pytest

from dynamics_cli.reproduction.claims import Claim, claim, claims_table, exactly, finding, over_seeds, summary


def claims_of(kinks: float, angle: float) -> list[Claim]:
    return [
        claim("kinks", "The function has two kinks", "Figure 2", expected=exactly(2), measured=kinks),
        finding("angle", "Angle", "Figure 2", measured=angle),
    ]


def test_the_row_is_the_first_seeds_and_the_count_that_of_all() -> None:
    kinks, angle = over_seeds({0: claims_of(2, 10), 1: claims_of(3, 11), 2: claims_of(2, 12)})
    assert (kinks.first.measured, kinks.first.verdict) == (2.0, "reproduced")
    assert (kinks.reproduced, kinks.count) == (2, "2/3")
    assert angle.count == ""
    told = kinks.as_dict()
    assert (told["seeds"], told["held"]) == (3, 2)
    assert told["per_seed"] == [
        {"offset": 0, "measured": 2.0, "verdict": "reproduced"},
        {"offset": 1, "measured": 3.0, "verdict": "not reproduced"},
        {"offset": 2, "measured": 2.0, "verdict": "reproduced"},
    ]
    assert angle.as_dict()["held"] is None
    assert [one["measured"] for one in angle.as_dict()["per_seed"]] == [10.0, 11.0, 12.0]


def test_a_failing_first_seed_is_not_hidden_by_later_ones() -> None:
    kinks, _ = over_seeds({0: claims_of(5, 0), 1: claims_of(2, 0)})
    assert (kinks.first.verdict, kinks.count) == ("not reproduced", "1/2")


def test_one_seed_has_no_count() -> None:
    kinks, _ = over_seeds({0: claims_of(2, 10)})
    assert kinks.count == ""
    assert "seeds" not in kinks.as_dict()


def test_a_claim_that_a_seed_lacks_is_not_reproduced_there() -> None:
    kinks, angle = over_seeds({0: claims_of(2, 10), 1: []})
    assert kinks.count == "1/2"
    assert (kinks.outcomes[1].measured, kinks.outcomes[1].verdict) == (None, "not reproduced")
    assert angle.outcomes[1].verdict == "shown"


def test_ids_must_be_unique_and_seeds_there() -> None:
    with pytest.raises(ValueError, match="unique"):
        over_seeds({0: [*claims_of(2, 1), *claims_of(2, 1)]})
    with pytest.raises(ValueError, match="no seed"):
        over_seeds({})


def test_the_table_has_a_row_for_each_claim_findings_last_and_fits_the_width() -> None:
    joined = over_seeds({0: claims_of(2, 10)[::-1], 1: claims_of(3, 11)})
    lines = claims_table(joined, width=90).splitlines()
    assert lines[0].split() == ["claim", "source", "paper", "measured", "verdict", "seeds"]
    assert lines[2].split("  ")[0] == "The function has two kinks"
    assert lines[2].endswith("1/2")
    assert lines[3].startswith("Angle")
    assert max(map(len, lines)) <= 90
    narrow = claims_table(joined, width=76).splitlines()
    assert len(narrow) == len(lines)
    assert "seeds" not in claims_table(over_seeds({0: claims_of(2, 10)}), width=90)


def test_the_summary_counts() -> None:
    assert summary(claims_of(2, 1)) == "1 of 1 claim reproduced, 1 finding"
    assert summary([*claims_of(2, 1)[:1], *claims_of(3, 1)[:1]]) == "1 of 2 claims reproduced"
