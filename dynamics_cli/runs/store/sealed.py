"""JSON files that carry a checksum of their contents: a change of any of their bytes shows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import AfterValidator, BaseModel, ValidationError

from dynamics_cli.errors import RunError
from dynamics_cli.runs.errors import CorruptRunError, unreadable_as_corrupt
from dynamics_cli.runs.store import files
from dynamics_cli.text import jsonable

FORMAT = 1
"""Version of all that dyn writes. What an earlier version wrote is read for ever (`READERS`)."""
READERS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""By format, the function that turns the contents of a file into the next format.

Who raises `FORMAT` adds the reader of the format before, and a corpus (`tests/corpus/make.py`).
"""
_CHECKSUM = "checksum"
_DIGITS = 300
"""Most digits of a whole number: each fits into a float."""
_SEALED = re.compile(rb'(.*),\s+"checksum": "([0-9a-f]{64})"(\n?\})\n', re.DOTALL)
"""A sealed file; without the second group, it is the text with the checksum of that group."""

_FILE_NAME = re.compile(r"[^./\\\x00-\x1f][^/\\\x00-\x1f]*")


def check_file_name(name: str) -> str:
    """Return a name; ValueError unless it can be the name of a visible file in a folder."""
    if not _FILE_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a file in a folder")
    return name


FileName = Annotated[str, AfterValidator(check_file_name)]
"""A name in a sealed file that is used in a folder: it has no folder, and is not hidden."""


class Anything(BaseModel):
    """The form of a sealed file whose entries nobody reads by name."""


Sealed = TypeVar("Sealed", bound=BaseModel)


def write_sealed(path: Path, content: Mapping[str, Any], *, indent: int | None = 2) -> None:
    """Write a JSON file, sealed, in one indivisible step.

    Raises RunError: it cannot be written.
    """
    files.save(path, seal(content, indent=indent))


def read_sealed(
    path: Path, usable: str = "", *, form: type[BaseModel] = Anything
) -> dict[str, Any]:
    """Return the contents of a sealed file, which has a form; raises as `read_form`."""
    content = _content(path, usable)
    _formed(path, content, form, usable)
    return content


def read_form(path: Path, form: type[Sealed], usable: str = "") -> Sealed:
    """Return what a sealed file holds; `usable` names the way out of damage.

    A checksum is no proof of who wrote a file: `form` has every entry that is read, with its type,
    `FileName` where it names a file.

    Raises:
        FileNotFoundError: it is not there.
        NotADirectoryError: nor is its folder.
        CorruptRunError: it cannot be read, is not such a file, or was changed.
        RunError: a later version of dyn wrote it.
    """
    return _formed(path, _content(path, usable), form, usable)


def _content(path: Path, usable: str) -> dict[str, Any]:
    with unreadable_as_corrupt(path, usable, but=(FileNotFoundError, NotADirectoryError)):
        data = files.read(path)
    try:
        text = data.decode(errors="surrogatepass")
        content = json.loads(text, parse_int=_whole, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CorruptRunError(path, "it is not valid JSON", usable) from error
    if not isinstance(content, dict):
        raise CorruptRunError(path, "it does not hold what dyn writes there", usable)
    sealed = _SEALED.fullmatch(data)
    if sealed is None or hashlib.sha256(sealed[1] + sealed[3]).hexdigest().encode() != sealed[2]:
        raise CorruptRunError(path, "it does not fit its checksum; was it edited?", usable)
    del content[_CHECKSUM]
    return _as_of_today(path, content)


def _formed(path: Path, content: dict[str, Any], form: type[Sealed], usable: str) -> Sealed:
    try:
        return form.model_validate(content, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
        raise CorruptRunError(path, f"it is not one that dyn writes ({problem})", usable) from error


def _whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"{text[:20]}... is no number that dyn writes")
    return int(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _as_of_today(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return the contents of a file of any format up to `FORMAT` as this version writes them."""
    written = content.get("format")
    if type(written) is not int or written < 1:
        raise CorruptRunError(path, "it does not hold what dyn writes there")
    if written > FORMAT:
        raise RunError(
            f"{path} was written by a later version of dyn (format {written}; this one reads"
            f" formats up to {FORMAT})"
        )
    for old in range(written, FORMAT):
        content = READERS[old](content)
    return {**content, "format": FORMAT}


def seal(content: Mapping[str, Any], *, indent: int | None = 2) -> bytes:
    """Return the JSON text of `format` and `content`; the SHA-256 of it is the last entry.

    Numbers that are not finite become null.
    """
    content = jsonable({"format": FORMAT, **content})
    checksum = hashlib.sha256(_text(content, indent)).hexdigest()
    return _text({**content, _CHECKSUM: checksum}, indent) + b"\n"


def _text(content: Mapping[str, Any], indent: int | None) -> bytes:
    text = json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="surrogatepass")
