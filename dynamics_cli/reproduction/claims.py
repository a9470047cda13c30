"""Claims of a paper as measurements with a verdict, for a seed or several."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, get_args

from dynamics_cli.errors import InputError
from dynamics_cli.mathematics import in_unicode
from dynamics_cli.text import terminal_width, wrapped

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["claim", "theory"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order of tables."""
_LARGEST = sys.float_info.max
Verdict = Literal["reproduced", "not reproduced", "premise not met", "undecided"]
DECIDED: tuple[Verdict, ...] = ("reproduced", "not reproduced")
"""The verdicts that a tally counts; the others count neither way."""
DEPENDS = "depends on the seed"
"""The verdict over seeds where the share of them may lie on either side of one half."""
Z = 1.959963984540054
"""97.5 % quantile of the normal distribution, for intervals of 95 %."""
FEWEST_SEEDS = 4
"""Fewer seeds cannot decide: even if a claim comes out in all three, Wilson's interval reaches
below one half.
"""
MARKS = {"reproduced": "✓", "not reproduced": "✗", "premise not met": "–"}
PER_SEED = ("measured", "verdict", "low", "high")
"""Fields of a claim that another seed may change."""


@dataclass(frozen=True)
class Interval:
    """The expectation of a claim for a number: to be from `low` to `high`, both included; an
    absent end is no limit.
    """

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
        """The ends as JSON has them: the largest floats for infinite ones; none where no number
        fits (NaN).
        """
        low, high = (end if end is None else float(end) for end in (self.low, self.high))
        if (
            low == math.inf
            or high == -math.inf
            or any(end is not None and math.isnan(end) for end in (low, high))
        ):
            return None, None
        return None if low is None else max(low, -_LARGEST), None if high is None else min(
            high, _LARGEST
        )

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
    """Within an absolute tolerance of x; where x is NaN (the theory says nothing here) nothing
    holds.
    """
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
    """The least number that `expected` takes for reproduced, itself included; None where there
    is no limit.
    """
    high: float | None = None
    """The largest; with neither end, as without a prediction, no number is taken for it."""
    always: str = ""
    """Why no null of `dyn audit` can make it fail, in a sentence; empty of claims that some null
    must make fail.
    """
    of_draw: bool = False
    """Whether the expected number belongs to a released draw: other seeds do not decide it."""
    note: str = ""
    """Why the claim is not decided: the premise that the runs do not meet, or what would decide
    it.
    """

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, without an empty note."""
        document = asdict(self)
        if not self.note:
            del document["note"]
        return document


def claim(
    id: str,
    statement: str,
    source: str,
    expected: Interval,
    measured: SupportsFloat,
    *,
    always: str = "",
) -> Claim:
    """Compare a measured number with the expectation of paper or theory; a number that is not
    finite is not reproduced.

    `always` says in a sentence why no null of `dyn audit` can make the claim fail, such as a
    conserved quantity.
    """
    value = float(measured)
    low, high = expected.ends
    verdict: Verdict = "reproduced" if expected.holds(value) else "not reproduced"
    known = value if math.isfinite(value) else None
    return Claim(
        id,
        statement,
        source,
        str(expected),
        known,
        verdict,
        low=low,
        high=high,
        always=always,
        of_draw=expected.of_draw,
    )


def printed(value: float, last: float = 0.0) -> Interval:
    """Return a number of a released draw to its digits, four of them at most: rounding in training
    changes the next.

    `last` is a unit of the last printed digit, for numbers with fewer than four.
    """
    return replace(near(value, max(1e-4 * abs(value), last / 2)), of_draw=True)


def given(happened: bool | np.bool_, number: SupportsFloat) -> float:
    """Return a number that says something once training has come so far; NaN, never reproduced,
    where it has not.
    """
    return float(number) if happened else math.nan


def theory(
    id: str, statement: str, source: str, expected: Interval, measured: SupportsFloat
) -> Claim:
    """Compare as `claim` does, for a sentence that formulas or data decide: no network can make
    it fail.
    """
    return replace(claim(id, statement, source, expected, measured), kind="theory")


def presupposing(claim: Claim, premise: str, expected: Interval, measured: SupportsFloat) -> Claim:
    """Return a claim that only says something where its premise is met.

    `premise` is a sentence; `expected` and `measured` are the range that it asks for and the
    number that the runs have. Outside of the range the verdict is `premise not met`.
    """
    if expected.holds(float(measured)):
        return claim
    note = f"{premise}: {expected} is asked for, {float(measured):.3g} is given"
    return replace(claim, verdict="premise not met", note=note)


def undecided(claim: Claim, because: str) -> Claim:
    """Return a claim that the runs at hand cannot decide; the sentence `because` says what
    could.
    """
    return replace(claim, verdict="undecided", note=because)


@dataclass(frozen=True)
class ClaimOverSeeds:
    """A claim as each of several seeds gave it: the seeds that the configs name, then those plus
    1, 2, ...
    """

    each: tuple[Claim, ...]

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
        """The 95 % interval of Wilson (1927) for the share of seeds in which the claim comes
        out.
        """
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
        return "not reproduced" if high < 0.5 else DEPENDS

    @property
    def missed(self) -> bool:
        """Whether the claim is decided, and not reproduced or dependent on the seed."""
        return self.verdict in {"not reproduced", DEPENDS}

    @property
    def measured(self) -> float | None:
        """The median over the seeds that gave a finite number; None without any."""
        finite = [claim.measured for claim in self.each if claim.measured is not None]
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
        """Return the claim, its median and its verdict; with several seeds also the result of
        each.
        """
        document = self.first.as_dict() | {"measured": self.measured, "verdict": self.verdict}
        if len(self.each) > 1:
            per_seed = [{name: getattr(claim, name) for name in PER_SEED} for claim in self.each]
            document |= {"held": self.held, "interval": list(self.interval), "per_seed": per_seed}
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ClaimOverSeeds:
        """Return the claim that `as_dict` wrote."""
        known = {field.name for field in fields(Claim)}
        first = Claim(**{name: value for name, value in document.items() if name in known})
        return cls(tuple(replace(first, **of_seed) for of_seed in document.get("per_seed", [{}])))


def as_compared(measured: float | None, low: float | None, high: float | None) -> str:
    """Return a number with three digits, or as many as its comparison with a range needs; a dash
    for None.

    Digits before the point are all written, up to six.
    """
    if measured is None:
        return "-"
    digits = max(3, min(6, len(f"{abs(measured):.0f}")))
    if low is not None and high is not None and high > low:
        digits = max(digits, math.ceil(1 + math.log10(max(abs(low), abs(high)) / (high - low))))
    for more in range(digits, 17):
        rounded = float(text := f"{measured:.{more}g}")
        if all(
            end is None or (rounded < end, rounded > end) == (measured < end, measured > end)
            for end in (low, high)
        ):
            return text
    return repr(measured)


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
        missing = replace(claim, measured=None, verdict="not reproduced", low=None, high=None)
        each = [claim] if claim.of_draw else [of_seed.get(claim.id, missing) for of_seed in by_id]
        joined.append(ClaimOverSeeds(tuple(each)))
    return joined


def claims_table(claims: Sequence[ClaimOverSeeds], *, width: int | None = None) -> str:
    """Return claims, then theory, as lines of text: a statement behind a mark; below it source,
    range and number.

    Lines are at most `width` wide, by default as the terminal, where words allow it.
    """
    width = width or terminal_width()
    lines = []
    for claim in sorted(claims, key=lambda claim: KINDS.index(claim.first.kind)):
        measured = f"{'median' if len(claim.each) > 1 else 'measured'} {claim.shown}"
        details = [claim.first.source, f"expected {claim.first.expected}", measured]
        if claim.verdict != "reproduced":
            suffix = " (theory)" if claim.first.kind == "theory" else ""
            details.append(f"{claim.verdict}{suffix}")
        details += filter(None, [claim.first.note, claim.count])

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
    (count,) = counts
    return f" on {count} seeds" if count > 1 else " on one seed"
