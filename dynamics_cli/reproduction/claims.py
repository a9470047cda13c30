"""Claims of a paper as measurements with a verdict, for a seed or several."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, get_args

from dynamics_cli.errors import InputError
from dynamics_cli.text import number, text_table

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["claim", "theory"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order of tables."""
_LARGEST = sys.float_info.max
Verdict = Literal["reproduced", "not reproduced"]


@dataclass(frozen=True)
class Interval:
    """The expectation of a claim for a number: to be from `low` to `high`, both included; an absent end is no limit."""

    low: float | None = None
    high: float | None = None
    text: str = ""
    """How the table says it; by default the ends."""

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError("an interval without ends expects nothing")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"no number lies between {self.low} and {self.high}")

    def holds(self, measured: float) -> bool:
        """Return whether `low <= measured <= high`; never true for a number that is not finite."""
        above = self.low is None or measured >= self.low
        below = self.high is None or measured <= self.high
        return math.isfinite(measured) and above and below

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The ends as JSON has them: the largest floats for infinite ones; none where no number fits (NaN)."""
        low, high = (end if end is None else float(end) for end in (self.low, self.high))
        if low == math.inf or high == -math.inf or any(end is not None and math.isnan(end) for end in (low, high)):
            return None, None
        return None if low is None else max(low, -_LARGEST), None if high is None else min(high, _LARGEST)

    def __str__(self) -> str:
        if self.text:
            return self.text
        if self.low is None:
            return f"<= {self.high:.6g}"
        return f">= {self.low:.6g}" if self.high is None else f"{self.low:.6g} to {self.high:.6g}"


def around(x: float) -> Interval:
    """Return the interval of "around x": within 10 % of x."""
    half = abs(x) / 10
    return Interval(x - half, x + half, f"around {x:.6g}")


def near(x: float, tolerance: float) -> Interval:
    """Within an absolute tolerance of x; where x is NaN (the theory says nothing here) nothing holds."""
    text = f"{x:.6g} ± {tolerance:.2g}" if math.isfinite(x) else "no prediction"
    return Interval(x - tolerance, x + tolerance, text)


def at_least(x: float) -> Interval:
    """At least x."""
    return Interval(low=x)


def at_most(x: float) -> Interval:
    """At most x."""
    return Interval(high=x)


def more_than(x: float) -> Interval:
    """More than x; x itself is not."""
    return Interval(math.nextafter(x, math.inf), None, f"> {x:g}")


def less_than(x: float) -> Interval:
    """Less than x; x itself is not."""
    return Interval(None, math.nextafter(x, -math.inf), f"< {x:g}")


def exactly(x: float) -> Interval:
    """Exactly x (counts)."""
    return Interval(x, x, f"{x:g}")


def most() -> Interval:
    """Return the interval of "most" for a share: more than half."""
    return more_than(0.5)


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper turned into a measurement.

    A `claim` is decided by networks that were trained: some change of their runs makes it fail. `theory` is decided by
    formulas or data alone.
    """

    id: str
    """Unique within its figure."""
    statement: str
    """The sentence, in our words."""
    source: str
    """Section, figure or equation that says so."""
    expected: str
    """The value or range that the source gives."""
    measured: float | None
    """The measured number; None where it is not finite."""
    verdict: Verdict
    kind: Kind = "claim"
    low: float | None = None
    """The least number that `expected` takes for reproduced, itself included; None where there is no limit."""
    high: float | None = None
    """The largest; with neither end, as without a prediction, no number is taken for it."""
    always: str = ""
    """Why no null of `dyn audit` can make it fail, in a sentence; empty of claims that some null must make fail."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


def claim(
    id: str, statement: str, source: str, expected: Interval, measured: SupportsFloat, *, always: str = ""
) -> Claim:
    """Compare a measured number with the expectation of paper or theory; a number that is not finite is not reproduced.

    `always` says in a sentence why no null of `dyn audit` can make the claim fail, such as a conserved quantity.
    """
    value, (low, high) = float(measured), expected.ends
    verdict: Verdict = "reproduced" if expected.holds(value) else "not reproduced"
    known = value if math.isfinite(value) else None
    return Claim(id, statement, source, str(expected), known, verdict, low=low, high=high, always=always)


def given(happened: bool | np.bool_, number: SupportsFloat) -> float:
    """Return a number that says something once training has come so far; NaN, never reproduced, where it has not."""
    return float(number) if happened else math.nan


def theory(id: str, statement: str, source: str, expected: Interval, measured: SupportsFloat) -> Claim:
    """Compare as `claim` does, for a sentence that formulas or data decide: no network can make it fail."""
    return replace(claim(id, statement, source, expected, measured), kind="theory")


@dataclass(frozen=True)
class SeedOutcome:
    """The result of a seed for a claim."""

    seed: int
    """Seed offset: 0 for the seeds that the configs name, k for those plus k."""
    measured: float | None
    verdict: Verdict
    low: float | None = None
    """As those of the claim; a theory may predict another number of each seed."""
    high: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, the seed as `offset`."""
        return {"offset" if name == "seed" else name: value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class ClaimOverSeeds:
    """A claim with the results of all seeds; its verdict is over the seeds."""

    first: Claim
    outcomes: tuple[SeedOutcome, ...]

    @property
    def reproduced(self) -> int:
        """Number of seeds in which the claim came out."""
        return sum(outcome.verdict == "reproduced" for outcome in self.outcomes)

    @property
    def verdict(self) -> Verdict:
        """`reproduced` when it came out in more than half of the seeds."""
        return "reproduced" if 2 * self.reproduced > len(self.outcomes) else "not reproduced"

    @property
    def measured(self) -> float | None:
        """The median over the seeds that gave a finite number; None without any."""
        finite = [one.measured for one in self.outcomes if one.measured is not None]
        return median(finite) if finite else None

    @property
    def count(self) -> str:
        """`9/10`; empty for a single seed."""
        return f"{self.reproduced}/{len(self.outcomes)}" if len(self.outcomes) > 1 else ""

    def as_dict(self) -> dict[str, Any]:
        """Return the claim, its median and its verdict; with several seeds also the result of each."""
        document = self.first.as_dict() | {"measured": self.measured, "verdict": self.verdict}
        if len(self.outcomes) > 1:
            document["seeds"] = len(self.outcomes)
            document["held"] = self.reproduced
            document["per_seed"] = [one.as_dict() for one in self.outcomes]
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ClaimOverSeeds:
        """Return the claim that `as_dict` wrote."""
        first = Claim(**{one.name: document[one.name] for one in fields(Claim)})
        each = document.get("per_seed", [{**document, "offset": 0}])
        return cls(
            first,
            tuple(SeedOutcome(one["offset"], one["measured"], one["verdict"], one["low"], one["high"]) for one in each),
        )


def over_seeds(claims: Mapping[int, Sequence[Claim]]) -> list[ClaimOverSeeds]:
    """Join the claims of several seeds, offset -> claims, by their ids, in the order of the first seed.

    A claim that a later seed does not have counts as not reproduced there.

    Raises:
        ValueError: there is no seed.
        InputError: several claims have the same id.
    """
    if not claims:
        raise ValueError("there is no seed")
    first = next(iter(claims.values()))
    ids = [claim.id for claim in first]
    if repeated := sorted({name for name in ids if ids.count(name) > 1}):
        raise InputError(f"several claims have the id {', '.join(repeated)}; the ids of claims must be unique")
    by_id = {seed: {one.id: one for one in of_seed} for seed, of_seed in claims.items()}
    return [ClaimOverSeeds(one, tuple(_outcome(seed, by_id[seed].get(one.id)) for seed in claims)) for one in first]


def _outcome(seed: int, claim: Claim | None) -> SeedOutcome:
    if claim is None:
        return SeedOutcome(seed, None, "not reproduced")
    return SeedOutcome(seed, claim.measured, claim.verdict, claim.low, claim.high)


def claims_table(claims: Sequence[ClaimOverSeeds], *, width: int | None = None) -> str:
    """Return the claims as lines of text, theory after them, at most `width` wide where words allow it.

    `width` is that of the terminal by default. With several seeds a last column says how often each claim came out.
    """
    return text_table(*claims_cells(claims), width=width)


def claims_cells(claims: Sequence[ClaimOverSeeds]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the table of claims, then theory."""
    ordered = sorted(claims, key=lambda one: KINDS.index(one.first.kind))
    seeds = any(one.count for one in claims)
    header = ["claim", "source", "paper", "median" if seeds else "measured", "verdict", *(["seeds"] if seeds else [])]
    return header, [_row(one, seeds) for one in ordered]


def summary(claims: Sequence[ClaimOverSeeds]) -> str:
    """Return `7 of 8 claims reproduced, 2 of 2 of theory`."""
    of = {kind: [one.verdict for one in claims if one.first.kind == kind] for kind in KINDS}
    parts = []
    if (stated := of["claim"]) or not of["theory"]:
        parts.append(f"{stated.count('reproduced')} of {len(stated)} claim{'s' * (len(stated) != 1)} reproduced")
    if theory := of["theory"]:
        parts.append(f"{theory.count('reproduced')} of {len(theory)} of theory" + " reproduced" * (not stated))
    return ", ".join(parts)


def _verdict(one: ClaimOverSeeds) -> str:
    return f"{one.verdict} (theory)" if one.first.kind == "theory" else one.verdict


def _row(one: ClaimOverSeeds, seeds: bool) -> list[str]:
    claim = one.first
    cells = [claim.statement, claim.source, claim.expected, number(one.measured), _verdict(one)]
    return [*cells, one.count] if seeds else cells
