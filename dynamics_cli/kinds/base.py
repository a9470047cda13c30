"""The base class of all sections of a config, and kinds: the classes that a config can name.

A kind is one class: its fields are the YAML keys, its methods its behaviour. Naming it registers
it:

    class Tanh(Activation, kind="tanh"):
        ...

There is one registry. Bundled kinds and kinds from outside enter it in the same way and have the
same rights (see `registry`, which says where kinds come from). Nothing else in the program lists
kinds.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from dynamics_cli.errors import InputError

T = TypeVar("T")
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
PositiveInt = Annotated[int, Field(ge=1, lt=2**63)]
Fraction = Annotated[float, Field(gt=0, lt=1)]

Sections = Mapping[str, Any]
"""Validated sections of a config by name; a section that is itself wrong is not among them."""
Finding = tuple[tuple[str | int, ...], str]
"""Where something does not fit, as `("dataset", "x", 0)`, and why."""

LENIENT = "lenient"
"""In the context of a validation: a section whose kind is not loaded stays a plain dictionary,
and is no error.
"""
RECORDED = "recorded"
"""The key, and the kind of sections, of a run that a training loop outside of the program made
(`dyn.Recorder`).
"""
OTHERS: set[str] = set()
"""Modules and top packages with third-party code, as they are imported."""


def from_outside(cls: type) -> bool:
    """Return whether a class is third-party code."""
    return cls.__module__.partition(".")[0] in OTHERS


class Section(BaseModel):
    """An immutable section of a config; a key that it does not know is an error, never ignored."""

    # strict: a text is not coerced into a number, nor a number into a boolean, nor a boolean into a
    # number.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        defer_build=True,  # of most kinds a process uses none
    )
    example: ClassVar[str] = ""
    """YAML that `dyn explain` shows: the section, a kind as `{kind: ..., key: ...}`, or lines with
    all sections among which it makes sense.
    """

    @classmethod
    def further_keys(cls, given: Mapping[str, Any]) -> Collection[str]:
        """Return the keys that a section, as it is given, may have besides its fields."""
        return ()


class Kind(Section):
    """The base of all kinds: `class X(Base, kind="x")` has the name `x`.

    A base class of a section sets `section`.
    """

    section: ClassVar[str] = ""
    """The part of a config whose `kind` names it, such as `dataset`; set by base classes."""
    file_keys: ClassVar[tuple[str, ...]] = ()
    """Keys that name files; their contents enter the identity of a run, and relative names begin
    at the config.
    """
    titles: ClassVar[Mapping[str, str]] = {}
    """What pictures call keys of this class, with symbol and unit: `{"lr": "step size η"}`;
    others by their names.
    """
    kind: str = ""

    def __init_subclass__(cls, kind: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if kind is not None:  # before pydantic collects the fields
            cls.__annotations__["kind"] = Literal[kind]
            cls.kind = kind

    @classmethod
    def __pydantic_init_subclass__(cls, kind: str | None = None, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        if kind is not None:
            _add(cls, kind)

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield the mistakes of this section, alone or with the others; by default none."""
        yield from ()


def loaded(section: T, name: str) -> T:
    """Return a section of a recorded config.

    Raises:
        InputError: it, or a section in it, is a plain dictionary, since its kind is not loaded, or
            it belonged to a loop outside of dyn.
    """
    if isinstance(section, dict) and section.get("kind") == RECORDED:
        raise InputError(f"the {name} is not kept: a training loop outside of dyn made the run")
    for key, kind in _not_loaded(section, name):
        told = f"{key}.kind {kind!r} is not loaded; it is code of somebody else"
        raise InputError(f"{told}: `dyn --with PATH ...`, or `dyn.use(PATH)` in Python, loads it")
    return section


def _not_loaded(value: object, key: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the kind of every section in a value that stayed a plain dictionary."""
    items: Iterable[tuple[str, object]] = ()
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        yield key, value["kind"]
    elif isinstance(value, BaseModel):
        items = ((f"{key}.{name}", getattr(value, name)) for name in type(value).model_fields)
    elif isinstance(value, list | tuple):
        items = ((f"{key}[{k}]", item) for k, item in enumerate(value))
    for place, item in items:
        yield from _not_loaded(item, place)


_KINDS: dict[str, dict[str, type[Kind]]] = {}
"""Section -> name -> class, of everything that was registered."""


def _add(cls: type[Kind], name: str) -> None:
    """Enter a kind into the registry.

    Raises:
        InputError: its section has another kind of this name, or no file can have the name.
    """
    if not re.fullmatch("[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}", name):
        raise InputError(
            f"kind {name[:80]!r}: a name has at most 60 letters, digits, underscores, dots and"
            " hyphens"
        )
    if not cls.section:
        raise TypeError(
            f"{cls.__qualname__} belongs to no section: derive it from Dataset, Loss, Measure or"
            " the like"
        )
    if cls.__abstractmethods__:
        raise TypeError(
            f"{cls.section}.kind {name!r} does not say {', '.join(sorted(cls.__abstractmethods__))}"
        )
    for method in vars(cls):
        if any(getattr(vars(base).get(method), "__final__", False) for base in cls.__mro__[1:]):
            raise TypeError(
                f"{cls.section}.kind {name!r} defines {method}, which dyn derives from the formula"
            )
    module = cls.__module__.partition(".")[0]
    if module != "dynamics_cli":
        refuse_signatures(cls)
    known = _KINDS.setdefault(cls.section, {}).get(name)
    if known is not None and known.__module__ != cls.__module__:
        taken = f"{known.__module__}.{known.__qualname__} has this name"
        raise InputError(
            f"{cls.section}.kind {name!r} is taken: {taken}; give the kind of {cls.__qualname__}"
            " another"
        )
    _KINDS[cls.section][name] = cls
    if module != "dynamics_cli":
        OTHERS.add(module)


def refuse_signatures(cls: type[Kind]) -> None:
    """Refuse methods that cannot be called as `dyn` calls them.

    Raises InputError: one takes other arguments than the method of the base class.
    """
    for method in dir(cls):
        defined = [vars(base)[method] for base in cls.__mro__ if method in vars(base)]
        own = defined[0]
        first = defined[-1]
        if own is first or not (inspect.isfunction(own) and inspect.isfunction(first)):
            continue
        if not first.__module__.startswith("dynamics_cli."):
            continue
        called = inspect.signature(first)
        positional = []
        named = {}
        for parameter in called.parameters.values():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                named[parameter.name] = parameter
            elif parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
                positional.append(parameter)
        given = inspect.signature(own)
        try:
            given.bind(*positional, **named)
        except TypeError as error:
            place = f"{Path(own.__code__.co_filename).name}:{own.__code__.co_firstlineno}"
            raise InputError(
                f"{place}: {cls.__name__}.{method}({', '.join(given.parameters)}) is called as"
                f" {method}({', '.join(called.parameters)})"
            ) from error


def forget(module: str) -> None:
    """Take the kinds that a module, or those in a package, defined out of the registry."""
    for kinds in _KINDS.values():
        for name, cls in list(kinds.items()):
            if f"{cls.__module__}.".startswith(f"{module}."):
                del kinds[name]


def registered(section: str) -> Mapping[str, type[Kind]]:
    """Return the kinds of a section that are registered so far, by name."""
    return _KINDS.setdefault(section, {})


_LEAVES = frozenset({bool, int, float, str, type(None)})


def bundled(part: object) -> bool:
    """Return whether a section of a config, and all kinds inside of it, come with the program."""
    return all(
        type(kind).__module__.partition(".")[0] == "dynamics_cli" for _, kind in kinds_in(part)
    )


def kinds_in(
    value: object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Kind]]:
    """Yield every kind in a validated config, or in a part of it, with its place.

    A place is, for instance, `("record", "measures", 0)`.
    """
    if isinstance(value, Kind):
        yield path, value
    items: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, BaseModel):
        items = ((name, getattr(value, name)) for name in type(value).model_fields)
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    elif isinstance(value, Mapping):
        items = value.items()
    for name, item in items:
        if type(item) not in _LEAVES:  # most are: a sweep asks this of every job
            yield from kinds_in(item, (*path, name))
