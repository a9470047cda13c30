"""The base class of schedules by which states are recorded."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

from pydantic import Field

from dynamics_cli.kinds.base import Kind


class Snapshots(Kind):
    """When weights and measures are recorded; states 0 and N always are."""

    section: ClassVar[str] = "snapshots"
    include: list[Annotated[int, Field(ge=0, lt=2**63)]] = Field(default_factory=list)
    """Iterations kept besides those of the schedule; those after the end of the run are not
    reached.
    """

    @abstractmethod
    def next_after(self, iteration: int) -> int | None:
        """Return the state of the schedule after a given state; None after the last."""
