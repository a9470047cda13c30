"""Where kinds come from: the program itself, files named by `dyn --with`, installed packages.

- Bundled kinds stand in the rooms that `SECTIONS` names; a module is imported when a kind is asked for that it holds.
- `dyn --with FILE`, and `DYN_WITH` (paths joined as in `PATH`), import a Python file; `--with RUN_DIRECTORY` imports
  the copies of such files that a run keeps.
- Installed packages name modules by entry points of the group `dyn.kinds`. They are imported when a kind is asked for
  that is not there, or when all kinds are listed. A broken package is reported once, on stderr, and hides no other.

The source of a kind that is not bundled is part of the identity of every run that uses it: the whole file and the
local modules that it imports, or every Python file of the installed package.

`OneOf`, in the annotation of a key, says that its value is a kind of a section.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from pydantic import GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dynamics_cli.errors import DynError, InputError, RunError
from dynamics_cli.kinds.base import KEEP_UNKNOWN, Kind, Unknown, forget, kinds_in, registered

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
"""Section that has kinds, in the order of a config -> the room of the program that holds the bundled kinds.

Folders in a room, and modules whose name begins with `_`, are not looked into. Theories of a single paper are
in `experiments/<paper>/<room>/`.
"""
GROUP = "dyn.kinds"
"""Entry points of this group name modules that define kinds."""
WITH = "DYN_WITH"
PARTS = "parts"
"""Folder of a run directory with copies of the sources of its kinds."""
RUN_INFO = "run.json"
"""The description of a run in its directory, such as where its kinds came from."""
_PREFIX = "dyn_parts_"


@dataclass(frozen=True)
class KindSource:
    """Where foreign kinds were read from."""

    origin: str
    """The file as it was named, or the installed package with its version."""
    files: Mapping[str, bytes]
    """Relative name -> contents; the file that was named comes first."""

    @property
    def sha256(self) -> str:
        """Checksum of all files and their names."""
        digest = hashlib.sha256()
        for name, contents in sorted(self.files.items()):
            digest.update(f"{len(name)}:{name}:{len(contents)}:".encode() + contents)
        return digest.hexdigest()

    @property
    def folder(self) -> str:
        """Name of the folder below `PARTS` for its copy: that of the file to import, and the start of the checksum."""
        return f"{self.origin.removesuffix('.py')}-{self.sha256[:12]}"


_SOURCES: dict[str, KindSource] = {}
"""Name of a module that was loaded from outside -> its source."""
_NEWEST: dict[Path, str] = {}
"""A file that was loaded -> the module made of it last; a module of an earlier version has given up its kinds."""


def find_kind(section: str, name: str) -> type[Kind] | None:
    """Return the kind of a section by its name, None when nobody has registered it."""
    _load_named()
    if name not in registered(section):
        _load_room(SECTIONS[section], f'kind="{name}"')  # the module that says so: importing all takes half a second
    if name not in registered(section):
        _load_packages()
    return registered(section).get(name)


def get_kind(section: str, name: str) -> type[Kind]:
    """Return a kind that is known to be there; raise KeyError for another."""
    find_kind(section, name)
    return registered(section)[name]


def loaded_kinds(section: str) -> dict[str, type[Kind]]:
    """Return the kinds of a section, bundled and named by `--with`, in alphabetical order; packages are not asked."""
    _load_named()
    _load_room(SECTIONS[section])
    return dict(sorted(registered(section).items()))


def all_kinds(section: str) -> dict[str, type[Kind]]:
    """Return all kinds of a section by name, in alphabetical order."""
    _load_named()
    _load_packages()
    return loaded_kinds(section)


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


def _named() -> list[Path]:
    """Return the paths that `--with` and `DYN_WITH` name."""
    return [Path(path) for path in os.environ.get(WITH, "").split(os.pathsep) if path]


@cache
def _load_named() -> None:
    for path in _named():
        _load_path(path)


def _load_bundled() -> None:
    """Import all bundled kinds, before those of others, so that a name that is taken is noticed."""
    for room in dict.fromkeys(SECTIONS.values()):
        _load_room(room)


def use(path: str | Path) -> None:
    """Import a file of kinds, or the copies that a run directory keeps, here and in processes that are started later.

    Raises:
        InputError: the file cannot be imported.
    """
    absolute = Path(path).absolute()
    _load_named()
    _load_path(absolute)
    if absolute not in _named():
        os.environ[WITH] = os.pathsep.join(map(str, [*_named(), absolute]))


def _load_path(path: Path) -> None:
    """Import a file, a package (a paper may have kinds of its own), or the copies that a run directory keeps."""
    _load_bundled()
    if (path / "__init__.py").is_file():
        load_package(path)
    elif path.is_dir():
        for copy in sorted((path / PARTS).glob("*-*")):
            if not copy.name.endswith(f"-{KindSource('', _python_files(copy, copy)).sha256[:12]}"):
                raise InputError(f"--with {path}: {copy} is not the source that was used: it is damaged, or was edited")
            main = copy / f"{copy.name.rpartition('-')[0]}.py"
            if main.is_file():  # else it is the copy of a package, which is installed again, not imported from here
                _load_file(main)
    else:
        _load_file(path)


def module_of(path: str | Path, option: str) -> ModuleType:
    """Import a Python file, with its kinds and the local modules beside it; messages name the option that named it.

    Raises:
        InputError: it cannot be imported.
    """
    _load_named()
    _load_bundled()
    try:
        return _load_file(Path(path).absolute())
    except InputError as error:
        raise InputError(str(error).replace("--with", option, 1)) from error


def _load_file(path: Path) -> ModuleType:
    if path.suffix != ".py" or (path.exists() and not path.is_file()):  # a pipe would be waited for
        raise InputError(f"--with {path}: a Python file (.py), a run directory or a folder of papers is needed")
    source = KindSource(path.name, _local_files(path))
    name = f"{_PREFIX}{path.stem}_{source.sha256[:12]}"
    if (earlier := _NEWEST.get(path, name)) != name:
        forget(earlier)
    elif name in _SOURCES:
        return sys.modules[name]
    _SOURCES[name], _NEWEST[path] = source, name
    _look_in(path.parent)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with _importing(path):
            spec.loader.exec_module(sys.modules[name])
            _check_local_modules(path, source)
    except BaseException:
        forget(name)
        del sys.modules[name], _SOURCES[name], _NEWEST[path]
        raise
    return sys.modules[name]


def _look_in(folder: Path) -> None:
    """Let local modules be found in a folder, last, so that they hide nothing."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


@contextlib.contextmanager
def _importing(path: Path) -> Iterator[None]:
    """Run code of others while stdout, which belongs to our data, is stderr; an exit is an error like any other.

    Raises InputError: in place of whatever the code raises.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        why = str(error) if isinstance(error, InputError) else f"it cannot be imported: {_told(error)}"
        raise InputError(f"--with {path}: {why}") from error


def _check_local_modules(path: Path, source: KindSource) -> None:
    """Refuse a file that was given other modules than the files beside it: its identity would name the wrong source."""
    for name, contents in list(source.files.items())[1:]:
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        place = getattr(sys.modules.get(module), "__file__", None)
        if place is not None and (not Path(place).is_file() or Path(place).read_bytes() != contents):
            raise InputError(f"it imports {module}, which is {place} here, not {path.parent / name}; rename that file")


def kept_origin(directory: Path, kind: str) -> str | None:
    """Return where a run says that a kind came from whose source it keeps; None where it says nothing of it."""
    try:
        kinds = json.loads((directory / RUN_INFO).read_bytes())["kinds"]
        return next((str(about["from"]) for name, about in kinds.items() if name.endswith(f".{kind}")), None)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # no run, or a damaged run, of which others tell
        return None


def loaded_packages() -> list[Path]:
    """Return the folders of packages that `--with` and `DYN_WITH` name."""
    return [path for path in _named() if (path / "__init__.py").is_file()]


def load_package(path: Path) -> ModuleType:
    """Import the package in a folder, and its module `kinds` where it has one; return the package.

    A package inside another has the name that it has there.

    Raises:
        InputError: it cannot be imported, or another package has its name.
    """
    root, name = path.parent, path.name
    while (root / "__init__.py").is_file():
        root, name = root.parent, f"{root.name}.{name}"
    _look_in(root)
    with _importing(path):
        package = importlib.import_module(name)
        if (path / "kinds.py").is_file():
            importlib.import_module(f"{name}.kinds")
        if Path(package.__file__ or "").parent.resolve() != path.resolve():
            raise InputError(f"there is another package {name!r} ({package.__file__}); rename the folder")
    return package


def _local_files(path: Path) -> dict[str, bytes]:
    """Return a file and the modules beside it that it imports, directly or not, by their names relative to it."""
    files: dict[str, bytes] = {}
    todo = [path]
    while todo:
        file = todo.pop()
        relative = file.relative_to(path.parent)
        if relative.as_posix() in files:
            continue
        try:
            files[relative.as_posix()] = text = file.read_bytes()
            tree = ast.parse(text, file.name)
        except OSError as error:
            raise InputError(f"--with {file}: it cannot be read ({error.strerror})") from error
        except (SyntaxError, ValueError) as error:
            raise InputError(f"--with {file}: it is not Python: {_told(error)}") from error
        for module in _imported(tree, relative.parent.parts):
            places = [path.parent.joinpath(*module[: depth + 1]) for depth in range(len(module))]
            found = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
            todo += filter(Path.is_file, found)
    return files


def _imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the parts of the names of all modules that a module of `package` may import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            root = package[: len(package) + 1 - node.level] if node.level else ()
            module = (*root, *(node.module.split(".") if node.module else ()))
            yield from ((*module, alias.name) for alias in node.names)


@cache
def _load_packages() -> None:
    for point in entry_points(group=GROUP):
        _load_bundled()
        report_if_broken(point, point.load)


def report_if_broken(point: EntryPoint, load: Callable[[], Any]) -> Any:
    """Return the result of `load` for the entry point of a package; report it on stderr when it is broken."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout belongs to our data
            return load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also an exit at import
        owner = f"the package {point.dist.name}" if point.dist is not None else f"the entry point {point.value}"
        print(f"dyn: {owner} is left out, {point.value} cannot be used: {_told(error)}", file=sys.stderr)
        return None


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


class KindError(RunError):
    """A kind from outside raised an exception, or gave a value that cannot be used."""


@contextlib.contextmanager
def blamed() -> Iterator[None]:
    """Call kinds; an exception that comes out of a kind from outside, or its `sys.exit()`, becomes a `KindError`.

    It names the kind, or else the module, and the line.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, DynError) or (culprit := culprit_of(error)) is None:
            raise
        raise KindError(culprit) from error


def culprit_of(error: BaseException) -> str | None:
    """Return the kind from outside, file and line out of which an exception came, and the exception; None for ours."""
    kinds = [cls for section in SECTIONS for cls in registered(section).values() if is_foreign(cls)]
    modules, culprit, place = {cls.__module__ for cls in kinds}, "", ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if isinstance(kind := frame.f_locals.get("self"), Kind) and is_foreign(type(kind)):
            culprit = f"{kind.section}.kind {kind.kind!r}, "
        if frame.f_globals.get("__name__") in modules:
            place = f"{Path(frame.f_code.co_filename).name}, line {line}"
    return f"{culprit}{place}: {_told(error)}" if place else None


def is_foreign(cls: type) -> bool:
    """Return whether a kind does not come with the program."""
    return cls.__module__.partition(".")[0] != "dynamics_cli"


def source_of(cls: type[Kind]) -> KindSource | None:
    """Return the source of a kind, None for a bundled kind.

    Raises:
        InputError: it has no source that could be read, as a kind that was typed into a console.
    """
    module = cls.__module__
    if (text := cls.__dict__.get("source_text")) is not None:
        return KindSource(f"function {cls.__name__}", {f"{cls.__name__}.py": text.encode()})
    if not is_foreign(cls):
        return None
    if module not in _SOURCES:
        try:
            file = Path(inspect.getsourcefile(cls) or "")
            _SOURCES[module] = _installed_source(module, file) or _local_source(module, file)
        except (OSError, TypeError) as error:  # nothing to read it from
            raise InputError(
                f"{cls.__qualname__} has no source that can be read, so a run of it could not be told from another; "
                "write it to a file"
            ) from error
    return _SOURCES[module]


def _installed_source(module: str, path: Path) -> KindSource | None:
    """Return all Python files of the installed package that has a module, None when no package has it."""
    for owner in metadata.packages_distributions().get(module.partition(".")[0], ()):
        distribution = metadata.distribution(owner)
        files = [file for file in distribution.files or () if file.suffix == ".py" and ".." not in file.parts]
        if path.resolve() in {Path(str(file.locate())).resolve() for file in files}:
            contents = {file.as_posix(): file.read_binary() for file in files}
            return KindSource(f"{owner} {distribution.version}", contents)
    return None  # also of a package that is installed in place: its folder stands for it


def _local_source(module: str, path: Path) -> KindSource:
    """Return all Python files of the package that a module belongs to, or a module of its own with local modules."""
    depth = module.count(".") - (path.name != "__init__.py")
    if depth < 0:
        return KindSource(path.name, _local_files(path))
    root = path.parents[depth]
    return KindSource(root.name, _python_files(root, root.parent))


def _python_files(folder: Path, root: Path) -> dict[str, bytes]:
    """Return all Python files below a folder, by their names relative to `root`."""
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in folder.rglob("*.py") if file.is_file()}


def foreign_sources(config: object) -> dict[str, KindSource]:
    """Return the source of every kind of a config that is not bundled, by `section.name`.

    Raises:
        InputError: a kind has no source that can be read.
    """
    found = {f"{kind.section}.{kind.kind}": source_of(type(kind)) for _, kind in kinds_in(config) if kind.section}
    return {name: source for name, source in sorted(found.items()) if source is not None}


class OneOf:
    """Says that the value of a key is a kind of a section: `dataset: Annotated[Dataset, OneOf("dataset")]`.

    Args:
        section: that of the kinds.
        default: the kind of a mapping that names none.
        word: whether a kind may be named by one word, `relu` for `{kind: relu}`.

    """

    def __init__(self, section: str, *, default: str | None = None, word: bool = False) -> None:
        self.section, self.default, self.word = section, default, word

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        dump = core_schema.plain_serializer_function_ser_schema(self._dump, info_arg=False) if self.word else None
        return core_schema.with_info_plain_validator_function(self._validate, serialization=dump)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return a note that `schema` replaces by the choice between the kinds that there are then."""
        return {"kinds": self.section, "default kind": self.default, "word": self.word}

    def _validate(self, value: object, info: ValidationInfo) -> Kind:
        if isinstance(value, Kind) and (value.section == self.section or isinstance(value, Unknown)):
            return value
        if self.word and isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, Mapping):
            raise PydanticCustomError("model_type", "must be a section")
        name = value.get("kind", self.default)
        if name is None:
            raise PydanticCustomError("union_tag_not_found", "has no kind")
        cls = find_kind(self.section, name) if isinstance(name, str) else None
        if cls is not None:
            return cls.model_validate({**value, "kind": name}, context=info.context)
        if info.context and info.context.get(KEEP_UNKNOWN) and isinstance(name, str):
            return Unknown.model_validate({**value, "kind": name, "of": self.section})
        raise PydanticCustomError("union_tag_invalid", "has an unknown kind")

    @staticmethod
    def _dump(value: Kind) -> Any:
        """Return the word for a kind that has all its defaults, so that a config reads as people write it."""
        fields = type(value).model_fields.items()
        plain = not (value.model_extra or value.file_keys) and all(
            getattr(value, name) == field.get_default(call_default_factory=True)
            for name, field in fields
            if name not in ("kind", "of")
        )
        return value.kind if plain else value.model_dump(exclude_none=True)


def one_of(field: Any) -> OneOf | None:
    """Return the note of a field whose value, or each of whose values, is one of the kinds of a section."""
    for note in field.metadata:
        if isinstance(note, OneOf):
            return note
    for argument in _arguments(field.annotation):
        if isinstance(argument, OneOf):
            return argument
    return None


def _arguments(annotation: Any) -> Iterator[Any]:
    for argument in get_args(annotation):
        yield argument
        yield from _arguments(argument)
