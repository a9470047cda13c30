"""The base class of measures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from dynamics_cli.kinds.arrays import Floats
from dynamics_cli.kinds.base import Kind, Sections
from dynamics_cli.kinds.registry import OneOf
from dynamics_cli.kinds.snapshots import Snapshots

if TYPE_CHECKING:
    from dynamics_cli.kinds.problem import Problem, State


@dataclass(frozen=True)
class Column:
    """What labels a number of a measure."""

    name: str
    """In tables: the measure's name, with the label behind a dot where it has several numbers."""
    label: str
    """In legends and beside the measure's name; empty where it is a single number."""
    bound: tuple[str, float] | None
    """Name and value of a line beside its curve."""


class Measure(Kind):
    """A number or an array that is recorded beside the weights.

    The word alone is short for `{kind: word}`.
    """

    section: ClassVar[str] = "measure"
    by_default: ClassVar[bool] = False
    """Whether it is recorded where a config names no measures."""
    panel: ClassVar[str] = "measures"
    """The panel that draws it."""
    needs: ClassVar[str] = ""
    """The condition under which a problem offers it, for a message."""
    of_spectrum: ClassVar[bool] = False
    """Whether it is all eigenvalues of the Hessian, or rules (probes, 2, steps) of their
    density.
    """
    linear: ClassVar[bool] = False
    """Whether axis and colour scale are always linear, as for accuracies."""
    preconditioned: ClassVar[bool] = False
    """Whether it needs the preconditioner of the optimizer, `State.preconditioner`."""
    at: Annotated[Snapshots, OneOf("snapshots", default="geometric")] | None = None
    """When it measures; other recorded states hold NaN. By default at every recorded state."""

    @property
    def name(self) -> str:
        """The name of its array and its curve; two measures of a run need different names."""
        return self.kind

    @property
    def updates(self) -> int:
        """Number of earlier states that it needs in `State.before`."""
        return 0

    def bound(self, sections: Sections) -> tuple[str, float] | None:
        """Return name and value of a line beside the curve, such as `2 / η` for the sharpness."""
        return None

    def columns(self, sections: Sections) -> Sequence[str]:
        """Return the names of its numbers for a legend; none where shades tell them apart."""
        return ()

    @abstractmethod
    def measure(self, state: State) -> float | Floats:
        """Return the numbers of a state; of the same shape at every state."""

    def watch(self, problem: Problem) -> Any:
        """Return what measures states inside compiled calls, or None where nothing does.

        It gives the bits of `measure` (`gradients/watch.py`).
        """
        return None

    def offered(self, problem: Problem) -> bool:
        """Return whether a problem has this measure, such as a loss on held-out samples."""
        return True

    def usual(self, problem: Problem) -> bool:
        """Return whether a problem that offers a measure recorded by default records it."""
        return True

    def doubt(self, numbers: Floats, state: State) -> str | None:
        """Return why the numbers of a state cannot be trusted, if they cannot."""
        return None
