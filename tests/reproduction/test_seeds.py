"""Claims over seeds."""

from __future__ import annotations

import pytest

from dynamics_cli.errors import InputError
from dynamics_cli.reproduction.claims import (
    Claim,
    claim,
    claims_table,
    exactly,
    less_than,
    over_seeds,
    summary,
    theory,
)


def claims_of(kinks: float) -> list[Claim]:
    return [claim("kinks", "The function has two kinks", "Figure 2", expected=exactly(2), measured=kinks)]


def test_the_verdict_is_that_of_more_than_half_of_the_seeds() -> None:
    (kinks,) = over_seeds({0: claims_of(3), 1: claims_of(2), 2: claims_of(2)})
    assert (kinks.first.verdict, kinks.verdict, kinks.measured) == ("not reproduced", "reproduced", 2.0)
    told = kinks.as_dict()
    assert (told["verdict"], told["measured"]) == ("reproduced", 2.0)


def test_the_count_is_that_of_all_seeds() -> None:
    (kinks,) = over_seeds({0: claims_of(2), 1: claims_of(3), 2: claims_of(2)})
    assert (kinks.reproduced, kinks.count) == (2, "2/3")
    told = kinks.as_dict()
    assert (told["seeds"], told["held"]) == (3, 2)
    assert told["per_seed"] == [
        {"offset": 0, "measured": 2.0, "verdict": "reproduced", "low": 2.0, "high": 2.0},
        {"offset": 1, "measured": 3.0, "verdict": "not reproduced", "low": 2.0, "high": 2.0},
        {"offset": 2, "measured": 2.0, "verdict": "reproduced", "low": 2.0, "high": 2.0},
    ]


@pytest.mark.parametrize("measured", [(5, 2), (2, 5), (2, 2, 5, 5), (2, float("nan"))])
def test_half_of_the_seeds_is_not_enough(measured: tuple[float, ...]) -> None:
    (kinks,) = over_seeds({seed: claims_of(one) for seed, one in enumerate(measured)})
    assert kinks.verdict == "not reproduced"
    assert kinks.as_dict()["verdict"] == "not reproduced"


def test_one_seed_has_no_count() -> None:
    (kinks,) = over_seeds({0: claims_of(2)})
    assert kinks.count == ""
    assert "seeds" not in kinks.as_dict()


def test_a_claim_that_a_seed_lacks_is_not_reproduced_there() -> None:
    (kinks,) = over_seeds({0: claims_of(2), 1: []})
    assert kinks.count == "1/2"
    assert (kinks.outcomes[1].measured, kinks.outcomes[1].verdict) == (None, "not reproduced")


def test_ids_must_be_unique_and_seeds_there() -> None:
    with pytest.raises(InputError, match="several claims have the id .*unique"):
        over_seeds({0: [*claims_of(2), *claims_of(2)]})
    with pytest.raises(ValueError, match="no seed"):
        over_seeds({})


def test_the_table_has_a_row_for_each_claim_and_fits_the_width() -> None:
    joined = over_seeds({0: claims_of(2), 1: claims_of(3)})
    lines = claims_table(joined, width=90).splitlines()
    assert lines[0].split() == ["claim", "source", "paper", "median", "verdict", "seeds"]
    assert lines[2].split("  ")[0] == "The function has two kinks"
    assert lines[2].endswith("1/2")
    assert max(map(len, lines)) <= 90
    narrow = claims_table(joined, width=76).splitlines()
    assert len(narrow) == len(lines)
    assert "seeds" not in claims_table(over_seeds({0: claims_of(2)}), width=90)


def test_the_summary_counts_theory_apart() -> None:
    def summed(*claims: Claim) -> str:
        return summary(over_seeds({0: claims}))

    law = theory("law", "It is conserved", "Eq. 1", less_than(1), 0.5)
    broken = theory("broken", "It is conserved", "Eq. 1", less_than(1), 2)
    assert (law.kind, law.verdict, broken.verdict) == ("theory", "reproduced", "not reproduced")
    assert summed(*claims_of(2), law, broken) == "1 of 1 claim reproduced, 1 of 2 of theory"
    assert summed(law) == "1 of 1 of theory reproduced"
    assert summary(over_seeds({0: claims_of(2), 1: claims_of(3)})) == "0 of 1 claim reproduced"


def test_theory_stands_after_the_claims_and_is_named_in_the_table() -> None:
    law = theory("law", "It is conserved", "Eq. 1", less_than(1), 0.5)
    lines = claims_table(over_seeds({0: [law, *claims_of(2)]}), width=90).splitlines()
    assert [line.split("  ")[0] for line in lines[2:]] == ["The function has two kinks", "It is conserved"]
    assert lines[3].endswith("reproduced (theory)")
