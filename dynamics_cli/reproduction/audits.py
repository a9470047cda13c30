"""What stands beside a figure: its claims under nulls, longer training among them."""

from __future__ import annotations

import re
from functools import partial
from operator import is_
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dynamics_cli.reproduction.claims import Claim, as_compared
from dynamics_cli.runs.store.sealed import FileName, read_form

UNSAID = Field(exclude_if=partial(is_, None))
"""Of an entry that the JSON has where there is something to say."""


def _without_paths(reason: str) -> str:
    """Return a reason without directories; a run that diverged is named by its own."""
    return re.sub(r"/\S*/", "", reason.partition("; everything up to it is kept")[0])


class NullOutcome(BaseModel):
    """The claims of a figure under a null."""

    model_config = ConfigDict(extra="forbid")

    null: str
    held: dict[str, bool]
    """Id of every claim that was reproduced without the null -> whether it still is.

    Of longer training, id of every claim -> whether its verdict is the same.
    """
    reason: Annotated[str, AfterValidator(_without_paths)] = ""
    """Why all claims failed at once, or why the null does not apply: then `held` is empty."""
    why: dict[str, str] = {}
    """Id of a claim that holds -> why it does, as `Figure.passes` says."""
    measured: dict[str, float | None] = {}
    """Id of a claim that holds -> its number under the null, to read the sentence beside.

    Of longer training, of every claim.
    """
    factor: Annotated[float | None, UNSAID] = None
    """How many times as long the networks were trained; None where their length is no null."""

    @property
    def title(self) -> str:
        """What tables call it."""
        return self.null if self.factor is None else f"{self.factor:g} times as long"

    def said(self, claim: Claim) -> str:
        """Return what a table says of a claim: a dash where there is nothing to ask."""
        held = self.held.get(claim.id)
        if held is None:
            return "–"
        if self.factor is None:
            return "HOLDS" if held else "fails"
        number = as_compared(self.measured.get(claim.id), claim.low, claim.high)
        return "same" if held else f"changes ({number})"

    @property
    def remark(self) -> str:
        """A line below the table: why nothing held, or how many claims change; often empty."""
        if self.reason or self.factor is None:
            return self.reason and f"{self.title}: {self.reason}"
        changing = [*self.held.values()].count(False)
        return f"{self.title}: {changing} of {len(self.held)} claims change"


class Audit(BaseModel):
    """The claims of a figure under nulls."""

    figure: FileName
    claims: list[Claim]
    """Those that networks decide, as the figure's own runs give them."""
    nulls: list[NullOutcome]
    hashes: Annotated[dict[str, str | None] | None, UNSAID] = None
    """Role -> hash of the figure's runs; None in audits of before, which did not keep it."""

    def changed(self) -> list[str]:
        """Return the ids of claims whose verdict is another after longer training."""
        outcomes = [outcome for outcome in self.nulls if outcome.factor is not None]
        return [key for outcome in outcomes for key, same in outcome.held.items() if not same]

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
        rows = []
        for claim in self.claims:
            why = [claim.always] if claim.always else []
            for outcome in self.nulls:
                if claim.id in outcome.why:
                    number = as_compared(outcome.measured.get(claim.id), claim.low, claim.high)
                    why.append(f"{outcome.null} ({number}): {outcome.why[claim.id]}")
            said = (outcome.said(claim) for outcome in self.nulls)
            rows.append([claim.id, *said, "; ".join(why)])
        return ["claim", *(outcome.title for outcome in self.nulls), "why it holds"], rows


def read_audit(path: Path) -> Audit | None:
    """Return the `Audit` that a file holds; None where there is no file.

    Raises:
        CorruptRunError: it cannot be read, was changed, or is not one of `dyn audit`.
        RunError: another version of dyn wrote it.
    """
    try:
        return read_form(path, Audit)
    except FileNotFoundError:
        return None
