"""Values as JSON knows them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def jsonable(value: Any, *, absolute: bool = False) -> Any:
    """Return `value` as JSON knows it: NumPy's numbers and arrays as numbers and lists, non-finite numbers as `None`.

    Paths become text, `absolute` ones where asked for.
    """
    if isinstance(value, Mapping):
        return {str(key): jsonable(item, absolute=absolute) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item, absolute=absolute) for item in value]
    if isinstance(value, Path):
        return str(value.absolute() if absolute else value)
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy, which commands that need none do not import
        return jsonable(value.tolist(), absolute=absolute)
    return None if isinstance(value, float) and not math.isfinite(value) else value
