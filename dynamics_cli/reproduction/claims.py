"""Claims of a paper as measurements with a verdict, for a seed or several."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import not_
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Literal, SupportsFloat, get_args

from pydantic import BaseModel, Field

from dynamics_cli.errors import InputError
from dynamics_cli.mathematics import in_unicode
from dynamics_cli.reproduction.entries import Reason
from dynamics_cli.text import terminal_width, wrapped

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["claim", "theory"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order of tables."""
_LARGEST = sys.float_info.max
Verdict = Literal[
    "reproduced", "not reproduced", "premise not met", "undecided", "depends on the seed"
]
DECIDED: tuple[Verdict, ...] = ("reproduced", "not reproduced")
"""The verdicts that a tally counts; the others count neither way."""
DEPENDS: Verdict = "depends on the seed"
"""The verdict over seeds where the share of them may lie on either side of one half."""
Z = 1.959963984540054
"""97.5 % quantile of the normal distribution, for intervals of 95 %."""
FEWEST_SEEDS = 4
"""Fewer seeds cannot decide: even if a claim comes out in all three, Wilson's interval reaches
below one half.
"""
MARKS = {"reproduced": "✓", "not reproduced": "✗", "premise not met": "–"}
HOLDS = "holds all the same"
_OUTCOMES = {"reproduced": HOLDS, "not reproduced": "fails"}
"""What a claim does whose premise is not met, by its verdict without the premise."""
PER_SEED = ("measured", "verdict", "low", "high")
"""Fields of a claim that another seed may change."""


@dataclass(frozen=True)
class Interval:
    """The range from `low` to `high`, both included, that a claim expects; None is no limit."""

    low: float | None = None
    high: float | None = None
    text: str = ""
    """How the table says it; by default the ends."""
    of_draw: bool = False
    """Whether it is a number of one draw of data and weights, which other seeds do not have."""

    def holds(self, measured: float) -> bool:
        """Return whether `low <= measured <= high`; never true for a number that is not finite."""
        above = self.low is None or measured >= self.low
        below = self.high is None or measured <= self.high
        return math.isfinite(measured) and above and below

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The ends as JSON has them: the largest floats for infinite ones.

        Both are None where no number fits.
        """
        low = self.low
        high = self.high
        if low is not None:
            if math.isnan(low) or low == math.inf:
                return None, None
            low = max(float(low), -_LARGEST)
        if high is not None:
            if math.isnan(high) or high == -math.inf:
                return None, None
            high = min(float(high), _LARGEST)
        return low, high

    def __str__(self) -> str:
        if self.text:
            return self.text
        if self.low is None:
            return f"<= {self.high:.6g}"
        if self.high is None:
            return f">= {self.low:.6g}"
        return f"{self.low:.6g} to {self.high:.6g}"


def around(x: float) -> Interval:
    """Return the interval of "around x": within 10 % of x."""
    half = abs(x) / 10
    return Interval(x - half, x + half, f"around {x:.6g}")


def near(x: float, tolerance: float) -> Interval:
    """Within an absolute tolerance of x; where x is NaN, as without a prediction, nothing holds."""
    text = "no prediction"
    if math.isfinite(x):
        text = f"{x:.6g} ± {tolerance:.2g}"
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


class Claim(BaseModel, frozen=True):
    """A sentence of a paper turned into a measurement.

    A `claim` is decided by networks that were trained: some change of their runs makes it fail.
    `theory` is decided by formulas or data alone.
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
    """The least number that counts as reproduced; None where there is no limit."""
    high: float | None = None
    """The largest; with neither end, as without a prediction, no number counts."""
    always: str = ""
    """Why no null of `dyn audit` can make it fail; empty where some null must."""
    of_draw: bool = False
    """Whether the expected number belongs to a released draw: other seeds do not decide it."""
    note: Annotated[str, Field(exclude_if=not_)] = ""
    """Its premise, as a number, or what would decide it."""
    because: Annotated[Reason | None, Field(exclude=True)] = None
    """Why the claim is missed or not decided, as the index of papers says (`explained`)."""

    @property
    def holds(self) -> bool:
        """Whether the number lies in its range, with or without the premise."""
        unpremised = self.verdict == "premise not met" and self.note.startswith(HOLDS)
        return unpremised or self.verdict == "reproduced"

    def but(self, **changes: Any) -> Claim:
        """Return the claim with other entries."""
        return self.model_copy(update=changes)


def claim(
    id: str,
    statement: str,
    source: str,
    expected: Interval,
    measured: SupportsFloat,
    *,
    always: str = "",
) -> Claim:
    """Compare a measured number with the expectation of paper or theory.

    A number that is not finite is not reproduced. `always` says in a sentence why no null of `dyn
    audit` can make the claim fail, such as a conserved quantity.
    """
    value = float(measured)
    low, high = expected.ends
    verdict: Verdict = "reproduced" if expected.holds(value) else "not reproduced"
    known = value if math.isfinite(value) else None
    return Claim(
        id=id,
        statement=statement,
        source=source,
        expected=str(expected),
        measured=known,
        verdict=verdict,
        low=low,
        high=high,
        always=always,
        of_draw=expected.of_draw,
    )


def printed(value: float, last: float = 0.0) -> Interval:
    """Return the interval of a number of a released draw: its digits, four of them at most.

    Rounding in training changes the next digit. `last` is a unit of the last printed digit, for
    numbers with fewer than four.
    """
    return replace(near(value, max(1e-4 * abs(value), last / 2)), of_draw=True)


def given(happened: bool | np.bool_, number: SupportsFloat) -> float:
    """Return a number that says something only once an event of training has happened.

    It is NaN, which is never reproduced, where the event has not happened.
    """
    return float(number) if happened else math.nan


def theory(
    id: str, statement: str, source: str, expected: Interval, measured: SupportsFloat
) -> Claim:
    """Compare as `claim` does, where formulas or data decide: no network can make it fail."""
    return claim(id, statement, source, expected, measured).but(kind="theory")


def presupposing(claim: Claim, premise: str, expected: Interval, measured: SupportsFloat) -> Claim:
    """Return a claim that only says something where its premise is met, with the premise's number.

    `premise` is a sentence; `expected` and `measured` are the range that it asks for and the
    number that the runs have. Outside of the range the verdict is `premise not met`, whether or
    not the claim holds; the note says which. Premises can be nested.
    """
    told = f"{premise}: {expected} is asked for, {float(measured):.3g} is given"
    met = expected.holds(float(measured))
    outcome = "" if met else _OUTCOMES.get(claim.verdict, "")
    verdict = claim.verdict if met else "premise not met"
    note = "; ".join(filter(None, [outcome, claim.note, told]))
    return claim.but(verdict=verdict, note=note)


def undecided(claim: Claim, because: str) -> Claim:
    """Return a claim that the runs at hand cannot decide; `because` says what could."""
    return claim.but(verdict="undecided", note=because)


class SeedForm(BaseModel):
    """What another seed may change of a claim, in a file."""

    measured: float | None
    verdict: Verdict
    low: float | None = None
    high: float | None = None


class ClaimForm(Claim):
    """A claim in a file, as `ClaimOverSeeds.as_dict` writes it."""

    held: int = 0
    interval: list[float] = []
    per_seed: Annotated[list[SeedForm], Field(min_length=1)] = []


@dataclass(frozen=True)
class ClaimOverSeeds:
    """A claim as each of several seeds gave it."""

    each: tuple[Claim, ...]
    """Of the seeds that the configs name, then of those plus 1, 2, ..."""

    @property
    def first(self) -> Claim:
        """The claim of the seeds that the configs name."""
        return self.each[0]

    @property
    def decided(self) -> tuple[Claim, ...]:
        """The claims of the seeds that decide it, which is each unless a premise is not met."""
        return tuple(claim for claim in self.each if claim.verdict in DECIDED)

    @property
    def held(self) -> int:
        """Number of seeds in which the claim came out."""
        return sum(claim.verdict == "reproduced" for claim in self.decided)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Wilson (1927) for the share of seeds where the claim comes out."""
        n = len(self.decided)
        if n == 0:
            return 0.0, 1.0
        share = self.held / n
        centre = share + Z**2 / (2 * n)
        half = Z * math.sqrt(share * (1 - share) / n + (Z / (2 * n)) ** 2)
        scale = 1 + Z**2 / n
        return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)

    @property
    def verdict(self) -> str:
        """The verdict of one seed, or over several.

        `reproduced` when the whole interval lies above one half, `not reproduced` when it lies
        below, otherwise `depends on the seed`; the first seed's where no seed decides.
        """
        if len(self.each) == 1 or not self.decided:
            return self.first.verdict
        low, high = self.interval
        if low > 0.5:
            return "reproduced"
        if high < 0.5:
            return "not reproduced"
        return DEPENDS

    @property
    def missed(self) -> bool:
        """Whether the claim is decided, and not reproduced or dependent on the seed."""
        return self.verdict in {"not reproduced", DEPENDS}

    @property
    def why(self) -> list[str]:
        """Its note and, unless it is reproduced, the reason in the index, where there are any."""
        because = None if self.verdict == "reproduced" else self.first.because
        return [str(one) for one in (self.first.note, because) if one]

    @property
    def measured(self) -> float | None:
        """The median over the seeds that decide and gave a finite number.

        Where no seed decides it is over all seeds; None without any number.
        """
        finite = [one.measured for one in self.decided or self.each if one.measured is not None]
        return median(finite) if finite else None

    @property
    def shown(self) -> str:
        """The measured number as tables write it."""
        return as_compared(self.measured, self.first.low, self.first.high)

    @property
    def count(self) -> str:
        """`9 of 10 (0.60 to 0.98)`; `of the released draw`; empty for a single seed."""
        if self.first.of_draw:
            return "of the released draw"
        if len(self.each) == 1 or not self.decided:
            return ""
        low, high = self.interval
        return f"{self.held} of {len(self.decided)} ({low:.2f} to {high:.2f})"

    def as_dict(self) -> dict[str, Any]:
        """Return the claim, its median and its verdict; with several seeds also each result."""
        document = self.first.model_dump() | {"measured": self.measured, "verdict": self.verdict}
        if len(self.each) > 1:
            per_seed = [{name: getattr(claim, name) for name in PER_SEED} for claim in self.each]
            document |= {"held": self.held, "interval": list(self.interval), "per_seed": per_seed}
        return document

    @classmethod
    def of_file(cls, claim: ClaimForm) -> ClaimOverSeeds:
        """Return the claim that a file holds; its numbers over seeds are computed anew."""
        document = claim.model_dump(exclude_unset=True)
        seeds = document.get("per_seed", [{}])
        return cls(tuple(Claim(**{**document, **of_seed}) for of_seed in seeds))


def explained(
    claims: Sequence[ClaimOverSeeds], missed: Mapping[str, Reason]
) -> list[ClaimOverSeeds]:
    """Return the claims with the reasons of an index by id, as `FigureEntry.missed` has them."""
    return [
        ClaimOverSeeds(tuple(one.but(because=missed.get(one.id)) for one in claim.each))
        for claim in claims
    ]


NARROW = 20
"""A range is narrow when its ends are at least this many times its tolerance."""


def as_compared(measured: float | None, low: float | None, high: float | None) -> str:
    """Return a number with three digits, or as many as its comparison with a range needs.

    A narrow range has the digits of its tolerance and one more, zeros among them: `1.0000` for
    1 ± 0.001. Digits before the point are all written, up to six. None is a dash.
    """
    if measured is None:
        return "-"
    ends = [end for end in (low, high) if end is not None]
    digits = max(3, min(6, len(f"{abs(measured):.0f}")))
    form = ""
    if len(ends) == 2 and ends[0] < ends[1]:
        tolerance = (ends[1] - ends[0]) / 2
        # the width of the widest range is no float
        share = max(abs(end) / tolerance for end in ends) if math.isfinite(tolerance) else 1.0
        digits = max(digits, math.ceil(1 + math.log10(share)))
        if share > NARROW:
            form = "#"

    # rounding must not move the number to, from or over an end
    for count in range(digits, 17):
        text = f"{measured:{form}.{count}g}".removesuffix(".")
        if all(_side(float(text), end) == _side(measured, end) for end in ends):
            return text
    return repr(measured)


def _side(number: float, end: float) -> tuple[bool, bool]:
    return number < end, number > end


def over_seeds(claims: Sequence[Sequence[Claim]]) -> list[ClaimOverSeeds]:
    """Join the claims of several seeds by their ids, in the order of the first seed.

    A claim that a later seed does not have counts as not reproduced there; numbers of a released
    draw have one seed.

    Raises InputError: several claims have the same id.
    """
    ids = [claim.id for claim in claims[0]]
    if repeated := sorted({name for name in ids if ids.count(name) > 1}):
        raise InputError(
            f"several claims have the id {', '.join(repeated)}; the ids of claims must be unique"
        )
    by_id = [{claim.id: claim for claim in of_seed} for of_seed in claims]
    joined = []
    for claim in claims[0]:
        missing = claim.but(measured=None, verdict="not reproduced", low=None, high=None)
        of_seeds = by_id[:1] if claim.of_draw else by_id
        each = tuple(of_seed.get(claim.id, missing) for of_seed in of_seeds)
        joined.append(ClaimOverSeeds(each))
    return joined


def claims_text(claims: Sequence[ClaimOverSeeds], *, width: int | None = None) -> str:
    """Return claims, then theory, as text: a statement behind a mark; below it its numbers.

    Lines are at most `width` wide, by default as the terminal, where words allow it.
    """
    width = width or terminal_width()
    lines = []
    for claim in sorted(claims, key=lambda claim: KINDS.index(claim.first.kind)):
        number = "median" if len(claim.each) > 1 else "measured"
        details = [claim.first.source, f"expected {claim.first.expected}"]
        details.append(f"{number} {claim.shown}")
        if claim.verdict != "reproduced":
            details.append(claim.verdict + " (theory)" * (claim.first.kind == "theory"))
        details += filter(None, [*claim.why, claim.count])

        statement = wrapped(in_unicode(claim.first.statement), width - 2)
        mark = MARKS.get(claim.verdict, "?")
        lines.append(f"{mark} {statement[0]}")
        below = [*statement[1:], *wrapped(" · ".join(details), width - 2)]
        lines += [f"  {line}" for line in below]
    return "\n".join(lines)


def summary(claims: Sequence[ClaimOverSeeds]) -> str:
    """Return `7 of 8 claims reproduced on one seed, 1 premise not met, 2 of 2 of theory`.

    Claims that are not decided count neither way, and are told apart.
    """
    stated, theory = ([claim for claim in claims if claim.first.kind == kind] for kind in KINDS)
    parts = []
    if stated or not theory:
        counted = sum(bool(claim.decided) for claim in stated)
        plural = "s" * (counted != 1)
        parts.append(f"{_share(stated)} claim{plural} reproduced{_on(stated)}")
    if depend := sum(claim.verdict == DEPENDS for claim in stated):
        parts.append(f"{depend} depend{'s' * (depend == 1)} on the seed")
    if theory:
        parts.append(f"{_share(theory)} of theory" + " reproduced" * (not stated))
    for verdict in ("premise not met", "undecided"):
        if count := sum(claim.verdict == verdict for claim in claims):
            parts.append(f"{count} {verdict}")
    return ", ".join(parts)


def _share(claims: Sequence[ClaimOverSeeds]) -> str:
    held = sum(claim.verdict == "reproduced" for claim in claims)
    counted = sum(bool(claim.decided) for claim in claims)
    return f"{held} of {counted}"


def _on(claims: Sequence[ClaimOverSeeds]) -> str:
    """Return ` on 10 seeds` where all claims have the same number of them."""
    counts = {len(claim.each) for claim in claims if not claim.first.of_draw}
    if len(counts) != 1:
        return ""
    if counts == {1}:
        return " on one seed"
    return f" on {counts.pop()} seeds"
