"""What stands beside a figure: its claims under nulls, and after longer training."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from dynamics_cli.reproduction.claims import Claim, as_compared
from dynamics_cli.runs.store.sealed import FileName, read_form

Report = TypeVar("Report", bound=BaseModel)


class NullOutcome(BaseModel):
    """The claims of a figure under a null."""

    model_config = ConfigDict(extra="forbid")

    null: str
    held: dict[str, bool]
    """Id of every claim that was reproduced without the null -> whether it still is."""
    reason: str = ""
    """Why all claims failed at once, or why the null does not apply: then `held` is empty."""
    why: dict[str, str] = {}
    """Id of a claim that holds -> why it does, as `Figure.passes` says."""
    measured: dict[str, float | None] = {}
    """Id of a claim that holds -> its number under the null, to read the sentence beside."""


class Audit(BaseModel):
    """The claims of a figure under nulls."""

    figure: FileName
    claims: list[Claim]
    """Those that networks decide, as the figure's own runs give them."""
    nulls: list[NullOutcome]
    hashes: dict[str, str | None] | None = None
    """Role -> hash of the figure's runs; None in audits of before, which did not keep it."""

    def survivors(self, null: str) -> list[str]:
        """Return the ids of claims that still hold under a null, and do not say why."""
        excused = {claim.id for claim in self.claims if claim.always}
        ids = []
        for outcome in self.nulls:
            if outcome.null == null:
                holding = [key for key, held in outcome.held.items() if held]
                ids += [key for key in holding if key not in excused | outcome.why.keys()]
        return ids

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows: claim by null; a dash where there is nothing to ask."""
        words = {None: "–", True: "HOLDS", False: "fails"}
        rows = []
        for claim in self.claims:
            why = [claim.always] if claim.always else []
            for outcome in self.nulls:
                if claim.id in outcome.why:
                    number = as_compared(outcome.measured.get(claim.id), claim.low, claim.high)
                    why.append(f"{outcome.null} ({number}): {outcome.why[claim.id]}")
            held = (words[outcome.held.get(claim.id)] for outcome in self.nulls)
            rows.append([claim.id, *held, "; ".join(why)])
        return ["claim", *(outcome.null for outcome in self.nulls), "why it holds"], rows

    def as_dict(self) -> dict[str, Any]:
        """Return the figure's entry in the output of `--json`."""
        return self.model_dump(exclude={"hashes"} if self.hashes is None else None)


class Longer(BaseModel):
    """The claims of a figure that networks decide, and the same claims after longer training."""

    figure: FileName
    longer: float
    """How many times as long the networks were trained."""
    claims: list[Claim]
    """As the figure's own runs give them."""
    later: list[Claim]
    """As the longer runs give them; a claim that these do not have is missing."""
    reason: str
    """Why there are no longer runs, or why they gave no claims; then `later` is empty."""
    hashes: dict[str, str | None]
    """Role -> hash of the figure's runs."""

    def verdict(self, id: str) -> str:
        """Return a later verdict; a claim that the evidence no longer has is not reproduced."""
        found = self.after(id)
        return "not reproduced" if found is None else found.verdict

    def after(self, id: str) -> Claim | None:
        """Return a claim after longer training; None where it is missing."""
        return next((claim for claim in self.later if claim.id == id), None)

    @property
    def changed(self) -> list[Claim]:
        """The claims whose verdict is another after longer training, as before it."""
        if self.reason:
            return []
        return [claim for claim in self.claims if self.verdict(claim.id) != claim.verdict]

    @property
    def summary(self) -> str:
        """A sentence on how many claims change, or why that is not known."""
        trained = f"trained {self.longer:g} times as long"
        if self.reason:
            return f"{trained}: {self.reason}"
        return f"{trained}, {len(self.changed)} of {len(self.claims)} claims change"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows: the claims that change, with numbers and verdicts."""
        header = ["claim", "expected", "measured", f"{self.longer:g} times as long", "verdict"]
        rows = []
        for claim in self.changed:
            later = self.after(claim.id)
            numbers = [claim.measured, None if later is None else later.measured]
            rows.append(
                [
                    claim.id,
                    claim.expected,
                    *(as_compared(number, claim.low, claim.high) for number in numbers),
                    f"{claim.verdict}, then {self.verdict(claim.id)}",
                ]
            )
        return header, rows

    def as_dict(self) -> dict[str, Any]:
        """Return the figure's entry in the output of `--json`."""
        return {**self.model_dump(), "changed": [claim.id for claim in self.changed]}


def read_report(path: Path, form: type[Report]) -> Report | None:
    """Return the `Audit` or the `Longer` that a file holds; None where there is no file.

    Raises:
        CorruptRunError: it cannot be read, was changed, or is not one of `dyn audit`.
        RunError: another version of dyn wrote it.
    """
    try:
        return read_form(path, form)
    except FileNotFoundError:
        return None
