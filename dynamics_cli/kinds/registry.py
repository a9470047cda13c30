"""Where kinds come from.

They come from the program, files and folders of `dyn --with`, and installed packages.

- Bundled kinds stand in the rooms that `SECTIONS` names; a module is imported when a config names
  its kind.
- `dyn --with PATH`, and `DYN_WITH` (paths joined as in `PATH`), import a Python file, a package
  in a folder, or the package that `pyproject.toml` in a folder names.
- Installed packages name modules by entry points of the group `dyn`. They are imported when a kind
  is unknown, or when
  all kinds are listed. A broken package is reported once, on stderr, and hides no other.

A package, named or installed, may be a paper, with the module `kinds` beside its figures. The
source of a kind that is not bundled is part of the identity of every run that uses it: its whole
file or, in a package, all its `.py` files.

`OneOf`, in the annotation of a key, says that its value is a kind of a section.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import re
import sys
import tomllib
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from pydantic import GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dynamics_cli.errors import DynError, InputError, RunError
from dynamics_cli.kinds.base import (
    LENIENT,
    OTHERS,
    Kind,
    forget,
    from_outside,
    kinds_in,
    registered,
)
from dynamics_cli.process import alone

SECTIONS = {
    "dataset": "datasets",
    "architecture": "architectures",
    "activation": "architectures",
    "initialization": "initializations",
    "loss": "losses",
    "optimizer": "optimizers",
    "schedule": "optimizers",
    "measure": "recording",
    "snapshots": "recording",
    "theory": "theory",
}
"""Section that has kinds, in the order of a config -> the room of the program that holds the
bundled kinds.

Folders in a room, and modules whose name begins with `_`, are not looked into. Kinds of a single
paper are in `experiments/<paper>/<room>/`.
"""
GROUP = "dyn"
"""Entry points of this group name modules with kinds, and papers."""
WITH = "DYN_WITH"


@dataclass(frozen=True)
class KindSource:
    """The source of kinds that are not bundled."""

    origin: str
    """The name of the file, or of the package."""
    files: Mapping[str, bytes]
    """Relative name -> contents."""

    @property
    def sha256(self) -> str:
        """Checksum of all files and their names."""
        digest = hashlib.sha256()
        for name, contents in sorted(self.files.items()):
            digest.update(f"{len(name)}:{name}:{len(contents)}:".encode() + contents)
        return digest.hexdigest()

    @property
    def folder(self) -> str:
        """Name of the folder for a copy in a run directory."""
        return f"{self.origin.removesuffix('.py')}-{self.sha256[:12]}"


_SOURCES: dict[str, KindSource] = {}
"""Top-level third-party module -> its source, read when it was imported."""


def find_kind(section: str, name: str) -> type[Kind] | None:
    """Return the kind of a section by its name, None when nobody has registered it."""
    named_packages(os.environ.get(WITH, ""))
    if name not in registered(section):
        # the module that says so: importing all takes half a second
        _load_room(SECTIONS[section], f'kind="{name}"')
    if name not in registered(section):
        installed_packages()
    return registered(section).get(name)


def get_kind(section: str, name: str) -> type[Kind]:
    """Return a kind that is known to be there; raise KeyError for another."""
    find_kind(section, name)
    return registered(section)[name]


def loaded_kinds(section: str) -> dict[str, type[Kind]]:
    """Return the kinds of a section, bundled and by `--with`, in alphabetical order.

    Packages are not asked.
    """
    named_packages(os.environ.get(WITH, ""))
    _load_room(SECTIONS[section])
    return dict(sorted(registered(section).items()))


def all_kinds(section: str) -> dict[str, type[Kind]]:
    """Return all kinds of a section by name, in alphabetical order."""
    installed_packages()
    return loaded_kinds(section)


def general_kinds(section: str) -> dict[str, type[Kind]]:
    """Return the kinds of a section that do not serve a single bundled paper.

    A theory speaks of any run.
    """
    papers = "dynamics_cli._bundled.experiments."
    known = all_kinds(section).items()
    return {
        name: cls
        for name, cls in known
        if section == "theory" or not cls.__module__.startswith(papers)
    }


def speaking_of(word: str, kinds: Mapping[str, type]) -> str:
    """Return ` (did you mean ...?)` with the first kind whose sentence has a word, as `swish`."""
    found = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
    for name, cls in kinds.items():
        if len(word) > 2 and found.search((cls.__doc__ or "").split("\n\n")[0]):
            return f" (did you mean {name!r}?)"
    return ""


@cache
def _load_room(room: str, text: str = ', kind="') -> None:
    """Import the modules of a room that define kinds, or those whose source holds a text."""
    package = importlib.import_module(f"dynamics_cli.{room}")
    folders = {Path(folder): package.__name__ for folder in package.__path__}
    root = importlib.import_module("dynamics_cli._bundled")
    for folder in sorted((root.ROOT / "experiments").glob(f"*/{room}")):
        folders[folder] = f"{root.__name__}.experiments.{folder.parent.name}.{room}"
    for folder, name in folders.items():
        for file in sorted(folder.glob("*.py")):
            if not file.stem.startswith("_") and text in file.read_text(encoding="utf-8"):
                importlib.import_module(f"{name}.{file.stem}")


# -- code of others


@cache
def named_packages(paths: str) -> dict[str, ModuleType]:
    """Import the files and folders of `DYN_WITH`.

    Return the packages among them by the names of their folders.

    Raises:
        InputError: one cannot be imported.
    """
    named = [package_in(Path(path)) for path in paths.split(os.pathsep) if path]
    modules = [load(path) for path in named]
    return {path.name: module for path, module in zip(named, modules, strict=True) if path.is_dir()}


@cache
def installed_packages() -> dict[str, ModuleType]:
    """Import the modules that installed packages name.

    A broken package is reported on stderr and left out.
    """
    packages = {}
    for point in entry_points(group=GROUP):
        try:
            packages[point.name] = _load_module(point.module)
        except InputError as error:
            print(f"dyn: the package {point.value} is left out: {error}", file=sys.stderr)
    return packages


def use(path: str | Path) -> None:
    """Load a file of kinds or the folder of a paper, as `dyn --with PATH` does.

    Processes that are started later load it too.

    A file that was edited since is loaded anew.

    Raises InputError: it cannot be imported.
    """
    absolute = str(package_in(Path(path).absolute()))
    named = os.environ.get(WITH, "")
    load(Path(absolute))
    if absolute not in named.split(os.pathsep):
        os.environ[WITH] = os.pathsep.join(filter(None, [named, absolute]))


def package_in(folder: Path) -> Path:
    """Return the package that `pyproject.toml` of a folder names as entry point of `dyn`.

    Of a folder without it, and of a file, it is the path itself.
    """
    file = folder / "pyproject.toml"
    try:
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        (module, *_) = project["entry-points"][GROUP].values()
        package = folder / module
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return folder
    return package if (package / "__init__.py").is_file() else folder


def load(path: Path) -> ModuleType:
    """Import a Python file, or the package in a folder, anew when it was edited.

    Raises:
        InputError: it cannot be imported, or another module has its name.
    """
    name = path.name.removesuffix(".py")
    place = path
    # a module of a package has the name that it has there
    while (place.parent / "__init__.py").is_file():
        place = place.parent
        name = f"{place.name}.{name}"
    top = name.partition(".")[0]
    loaded = False
    try:
        if not (path / "__init__.py").is_file() and (path.is_dir() or path.suffix != ".py"):
            raise InputError(
                "a Python file (.py), or the folder of a package with an __init__.py, is needed"
            )
        source = _read(place)
        if top in _SOURCES and _SOURCES[top] != source:
            _unload(top)
        loaded = top in sys.modules
        if str(place.parent) not in sys.path:
            sys.path.append(str(place.parent))  # last, so that it hides nothing
        module = _load_module(name)
        if Path(module.__file__ or "").resolve() not in (
            path.resolve(),
            (path / "__init__.py").resolve(),
        ):
            raise InputError(f"there is another module {name!r} ({module.__file__}); rename {path}")
    except InputError as error:
        if not loaded:
            _unload(top)
        raise InputError(f"--with {path}: {error}") from error
    _SOURCES[top] = source
    return module


def _unload(top: str) -> None:
    """Forget a module, or a package with all its modules, and the kinds that they defined."""
    forget(top)
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{top}.")]:
        del sys.modules[name]


def _load_module(name: str) -> ModuleType:
    """Import a module, or a package with its module `kinds` where it has one."""
    for room in dict.fromkeys(SECTIONS.values()):  # first, so that a name that is taken is noticed
        _load_room(room)
    OTHERS.add(name.partition(".")[0])
    importlib.invalidate_caches()
    with importing():
        module = importlib.import_module(name)
        if hasattr(module, "__path__") and importlib.util.find_spec(f"{name}.kinds"):
            importlib.import_module(f"{name}.kinds")
    return module


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Import third-party code with stdout sent to stderr; stdout belongs to our data.

    An exit is an error like any other.

    No bytecode is written: Python takes it for any file of equal size and second of change.

    Raises:
        InputError: in place of whatever the code raises.
    """
    written = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        with alone(), contextlib.redirect_stdout(sys.stderr):
            yield
    except (KeyboardInterrupt, DynError):
        raise
    except BaseException as error:
        raise InputError(f"it cannot be imported: {place_of(error) or _told(error)}") from error
    finally:
        sys.dont_write_bytecode = written


def place_of(error: BaseException, within: str | None = None) -> str | None:
    """Return an exception with the last line of third-party code that it came through.

    None of an exception of ours.

    With `within`, only code of modules whose names begin so counts.
    """
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_globals.get("__name__", "")
        counts = name.partition(".")[0] in OTHERS
        if within:
            counts = name.startswith(within)
        if counts:
            place = f"{Path(frame.f_code.co_filename).name}, line {line}"
    return f"{place}: {_told(error)}" if place else None


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


class KindError(RunError):
    """A kind from outside raised an exception, or gave a value that cannot be used."""


@contextlib.contextmanager
def blamed(kind: Kind | None = None) -> Iterator[None]:
    """Call kinds, and blame exceptions on the kinds from outside.

    An exception of one, or its `sys.exit()`, becomes a `KindError` that names the line.

    Where `kind` is from outside, an exception of a package that it uses, such as that of a network
    which the package made, names the kind.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, DynError):
            raise
        place = place_of(error)
        if place is None and kind is not None and _of_package(error, kind):
            place = f"{kind.kind}: {_told(error)}"
        if place is None:
            raise
        raise KindError(place) from error


def _of_package(error: BaseException, kind: Kind) -> bool:
    """Return whether a kind is from outside and an exception comes from no code of ours."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    raised_in = frame.f_globals.get("__name__", "").partition(".")[0]
    return from_outside(type(kind)) and raised_in != "dynamics_cli"


# -- sources


def source_of(cls: type[Kind]) -> KindSource | None:
    """Return the source of a kind, None for a bundled kind.

    Raises:
        InputError: it has no source that could be read, as a kind that was typed into a console.
    """
    if (text := cls.__dict__.get("source_text")) is not None:
        return KindSource(f"function {cls.__name__}", {f"{cls.__name__}.py": text.encode()})
    top = cls.__module__.partition(".")[0]
    if top == "dynamics_cli":
        return None
    if top not in _SOURCES:
        module = sys.modules.get(top)
        place = next(iter(getattr(module, "__path__", ())), getattr(module, "__file__", None))
        if place is None:
            raise InputError(
                f"{cls.__qualname__} has no source that can be read, so a run of it could not be"
                " told from another; write it to a file"
            )
        _SOURCES[top] = _read(Path(place))
    return _SOURCES[top]


def _read(place: Path) -> KindSource:
    """Return the source of a module: its file, or all `.py` files in the folder of a package."""
    files = [place]
    if place.is_dir():
        files = sorted(place.rglob("*.py"))
    names = {file.relative_to(place.parent).as_posix(): file for file in files}
    try:
        return KindSource(
            place.name,
            {name: file.read_bytes() for name, file in names.items() if "/." not in name},
        )
    except OSError as error:
        raise InputError(
            f"{Path(error.filename).name} cannot be read ({error.strerror})"
        ) from error


def foreign_sources(config: object) -> dict[str, KindSource]:
    """Return the source of every kind of a config that is not bundled, by `section.name`.

    Raises:
        InputError: a kind has no source that can be read.
    """
    sources = {
        f"{kind.section}.{kind.kind}": source_of(type(kind))
        for _, kind in kinds_in(config)
        if kind.section
    }
    return {name: source for name, source in sorted(sources.items()) if source is not None}


class OneOf:
    """Says that the value of a key is a kind of a section.

    As in `dataset: Annotated[Dataset, OneOf("dataset")]`.

    Args:
        section: the section of the kinds.
        default: the kind of a mapping that names none.
        word: whether a kind may be named by one word, `relu` for `{kind: relu}`.
    """

    def __init__(self, section: str, *, default: str | None = None, word: bool = False) -> None:
        self.section = section
        self.default = default
        self.word = word

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        dump = None
        if self.word:
            dump = core_schema.plain_serializer_function_ser_schema(self._dump, info_arg=False)
        return core_schema.with_info_plain_validator_function(self._validate, serialization=dump)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return a note for `dyn explain`; pydantic has no schema of validating functions."""
        return {"kinds": self.section}

    def _validate(self, value: object, info: ValidationInfo) -> Kind | dict[str, Any]:
        if isinstance(value, Kind) and value.section == self.section:
            return value
        if self.word and isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, Mapping):
            raise PydanticCustomError("model_type", "must be a section (a mapping)")
        name = value.get("kind", self.default)
        if name is None:
            raise PydanticCustomError("union_tag_not_found", "has no kind")
        cls = find_kind(self.section, name) if isinstance(name, str) else None
        if cls is not None:
            return cls.model_validate({**value, "kind": name}, context=info.context)
        if info.context and info.context.get(LENIENT) and isinstance(name, str):
            return {**value, "kind": name}
        raise PydanticCustomError("union_tag_invalid", "has an unknown kind")

    @staticmethod
    def _dump(value: Kind | dict[str, Any]) -> Any:
        """Return the word for a kind with all defaults, as people write configs."""
        if isinstance(value, dict):  # of a kind that is not loaded
            return value["kind"] if len(value) == 1 else value
        plain = not value.file_keys and all(
            getattr(value, name) == field.get_default(call_default_factory=True)
            for name, field in type(value).model_fields.items()
            if name != "kind"
        )
        return value.kind if plain else value.model_dump(exclude_none=True)


def one_of(field: Any) -> OneOf | None:
    """Return the note of a field whose value, or each item of it, is a kind of a section."""
    notes = [*field.metadata, field.annotation]
    for note in notes:
        if isinstance(note, OneOf):
            return note
        notes += get_args(note)
    return None
