"""What every section of a config shares."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """One immutable section of a config; a key that it does not know is an error, never ignored."""

    # strict: a text is not coerced into a number, nor a number into a boolean, nor a boolean into a number.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
PositiveInt = Annotated[int, Field(ge=1, lt=2**63)]
