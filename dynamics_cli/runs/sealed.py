"""JSON files that carry a checksum of their contents, so that a change of any of their bytes is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynamics_cli.errors import RunError

_CHECKSUM = "checksum"


def seal(content: Mapping[str, Any], *, indent: int | None = 2) -> bytes:
    """Return the JSON text of `content` with the SHA-256 of that text as its last entry.

    Raises:
        ValueError: a number that is not finite.
    """
    checksum = hashlib.sha256(_text(content, indent).encode(errors="surrogatepass")).hexdigest()
    return (_text({**content, _CHECKSUM: checksum}, indent) + "\n").encode(errors="surrogatepass")


def unseal(data: bytes) -> tuple[dict[str, Any], bool]:
    """Read what `seal` wrote; return the contents without their checksum, and whether they fit it byte for byte.

    Raises:
        ValueError: it is not a JSON object, with what is wrong in words.
    """
    try:
        content = json.loads(data.decode(errors="surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not valid JSON") from error
    if not isinstance(content, dict):
        raise ValueError("it does not hold what dyn writes there")
    told = content.pop(_CHECKSUM, None)
    try:
        intact = told is not None and seal(content, indent=2 if data.startswith(b"{\n") else None) == data
    except (ValueError, RecursionError):  # a number that is not finite, which is never written
        intact = False
    return content, intact


def refuse_newer(path: Path, version: object, newest: int) -> None:
    """Refuse a file of a format that only a newer version of dyn knows.

    Raises:
        RunError: it is of such a format.
    """
    if isinstance(version, int) and version > newest:
        raise RunError(f"{path} was written by a newer version of dyn (format {version}): update dyn to read it")


def _text(content: Mapping[str, Any], indent: int | None) -> str:
    return json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
