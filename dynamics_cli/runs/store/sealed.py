"""JSON files that carry a checksum of their contents, so that a change of any of their bytes is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from dynamics_cli.errors import RunError
from dynamics_cli.runs.errors import CorruptRunError, unreadable_as_corrupt
from dynamics_cli.runs.store import files

_CHECKSUM = "checksum"


def seal(content: Mapping[str, Any], *, indent: int | None = 2) -> bytes:
    """Return the JSON text of `content` with the SHA-256 of that text as its last entry.

    Raises ValueError: a number that is not finite.
    """
    checksum = hashlib.sha256(_text(content, indent).encode(errors="surrogatepass")).hexdigest()
    return (_text({**content, _CHECKSUM: checksum}, indent) + "\n").encode(errors="surrogatepass")


def unseal(data: bytes) -> tuple[dict[str, Any], bool]:
    """Read the text that `seal` returned: its contents without the checksum, and whether they fit it byte for byte.

    Raises ValueError: it is not a JSON object, with the reason in words.
    """
    try:
        content = json.loads(data.decode(errors="surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not valid JSON") from error
    if not isinstance(content, dict):
        raise ValueError("it does not hold what dyn writes there")
    stated = content.pop(_CHECKSUM, None)
    try:
        intact = stated is not None and seal(content, indent=2 if data.startswith(b"{\n") else None) == data
    except (ValueError, RecursionError):  # a number that is not finite, which is never written
        intact = False
    return content, intact


def read_sealed(path: Path, newest: int, usable: str = "") -> dict[str, Any]:
    """Read a sealed file whose entry `format` is a version from 1 to `newest`; return it without its checksum.

    `usable` names the way out of damage.

    Raises:
        FileNotFoundError: it is not there.
        NotADirectoryError: nor is its folder.
        CorruptRunError: it cannot be read, is not such a file, or was changed.
        RunError: a newer version of dyn wrote it.
    """
    with unreadable_as_corrupt(path, usable, but=(FileNotFoundError, NotADirectoryError)):
        data = files.read(path)
    try:
        content, intact = unseal(data)
    except ValueError as error:
        raise CorruptRunError(path, str(error), usable) from error
    version = content.get("format")
    if isinstance(version, int) and version > newest:
        wanted = f"format {version}, where this one reads formats up to {newest}"
        if intact:
            raise RunError(f"{path} was written by a newer version of dyn ({wanted}): update dyn to read it")
        raise CorruptRunError(path, f"it does not fit its checksum, or a newer version of dyn wrote it ({wanted})")
    if not intact and _CHECKSUM.encode() not in data:
        raise CorruptRunError(path, "it has no checksum: was it edited?", usable)
    if not intact or version not in range(1, newest + 1):
        raise CorruptRunError(path, "it does not fit its checksum; was it edited?", usable)
    return content


def check_entries(path: Path, content: Mapping[str, Any], model: type[BaseModel], usable: str = "") -> None:
    """Compare the entries of a sealed file with the model of the entries that dyn writes.

    A file can fit its checksum although dyn has not written it. `usable` names the way out then.

    Raises CorruptRunError: an entry does not fit the model; the entry is named.
    """
    try:
        model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        problem = f"its entry {first['loc'][0]!r} is not one that dyn writes ({first['msg']})"
        raise CorruptRunError(path, problem, usable) from error


def _text(content: Mapping[str, Any], indent: int | None) -> str:
    return json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
