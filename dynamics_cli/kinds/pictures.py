"""What a picture shows: a section of a config, and the words of `dyn plot`, files and Python."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from dynamics_cli.kinds.base import Section


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Words = Annotated[list[str], BeforeValidator(_listed)]


class Description(Section):
    """What a picture shows, in the words of options, of `picture.yaml` and of `dyn.picture`."""

    runs: Words = Field([])
    y: Words = Field([])
    x: str | None = None
    color: str | None = None
    dash: str | None = None
    marker: str | None = None
    facet: Words | None = None
    rows: Words | None = None
    columns: Words | None = None
    over: Words | None = None
    stat: Literal["median", "mean", "all", "best"] = "median"
    band: Literal["auto", "range", "90%", "se", "none"] = "auto"
    where: dict[str, Any] = Field({})
    at: Annotated[int, Field(ge=0)] | None = None
    log: Literal["x", "y", "xy", "c", "xc", "yc", "xyc", "none"] | None = None
    limits: dict[
        Literal["x", "y"], Annotated[list[float | None], Field(min_length=2, max_length=2)]
    ] = Field({})
    labels: dict[str, str] = Field({})
    title: str = ""
    bounds: Literal["near", "all", "none"] = "near"

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what nobody said."""
        return {key: value for key, value in handler(self).items() if key in self.model_fields_set}


class Whole(Description):
    """Pictures by name, in the words of the options of `dyn plot`.

    `panels` has several charts, each with words of its own.
    """

    example = """\
pictures:
  ends: {y: [loss, weight_norm], log: y, title: Loss and norm}
"""
    share: Literal["xy", "x", "y", "none"] = "xy"
    size: Literal["column", "page"] | float | list[float] | None = None
    legend: Literal["below", "inside", "none"] = "below"
    note: str | None = None
    panels: list[Description] = Field([])
