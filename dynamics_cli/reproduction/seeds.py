"""Claims over several seeds: every measured value is kept, and how often each claim came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynamics_cli.reproduction.claims import Claim, Verdict


@dataclass(frozen=True)
class SeedOutcome:
    """What one seed gave for one claim."""

    seed: int
    """Seed offset: 0 for the seeds that the configs name, k for those plus k."""
    measured: float | None
    verdict: Verdict


@dataclass(frozen=True)
class ClaimOverSeeds:
    """A claim as the first seed gave it, with what all seeds gave."""

    first: Claim
    outcomes: tuple[SeedOutcome, ...]

    @property
    def reproduced(self) -> int:
        """Number of seeds in which the claim came out."""
        return sum(outcome.verdict == "reproduced" for outcome in self.outcomes)

    @property
    def count(self) -> str:
        """`9/10`; empty for a finding, which has no verdict, and for a single seed."""
        if self.first.kind == "finding" or len(self.outcomes) < 2:
            return ""
        return f"{self.reproduced}/{len(self.outcomes)}"

    def as_dict(self) -> dict[str, Any]:
        """Return the claim of the first seed; with several, in how many it came out and what each of them gave."""
        told = self.first.as_dict()
        if len(self.outcomes) > 1:
            told["seeds"] = len(self.outcomes)
            told["held"] = self.reproduced if self.first.kind == "claim" else None
            told["per_seed"] = [
                {"offset": one.seed, "measured": one.measured, "verdict": one.verdict} for one in self.outcomes
            ]
        return told


def over_seeds(claims: Mapping[int, Sequence[Claim]]) -> list[ClaimOverSeeds]:
    """Join the claims of several seeds, offset -> claims, by their ids, in the order of the first seed.

    A claim that a later seed does not have counts as not reproduced there. Raises ValueError without any seed and for
    ids that are not unique.
    """
    if not claims:
        raise ValueError("there is no seed")
    first = next(iter(claims.values()))
    if len({one.id for one in first}) != len(first):
        raise ValueError(f"the ids of claims must be unique: {', '.join(one.id for one in first)}")
    by_id = {seed: {one.id: one for one in of_seed} for seed, of_seed in claims.items()}
    return [
        ClaimOverSeeds(one, tuple(_outcome(seed, by_id[seed].get(one.id), one) for seed in claims)) for one in first
    ]


def _outcome(seed: int, claim: Claim | None, first: Claim) -> SeedOutcome:
    if claim is None:
        return SeedOutcome(seed, None, "shown" if first.kind == "finding" else "not reproduced")
    return SeedOutcome(seed, claim.measured, claim.verdict)
