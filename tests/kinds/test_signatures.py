"""Methods of kinds from outside take what `dyn` hands to them, or are refused as they are read."""

import inspect

import pytest

from dynamics_cli import kinds
from dynamics_cli.errors import InputError
from dynamics_cli.kinds.base import Kind, refuse_signatures
from dynamics_cli.kinds.registry import SECTIONS, all_kinds

from ..conftest import stranger_to_kinds

BASES = [
    base
    for base in vars(kinds).values()
    if inspect.isclass(base) and issubclass(base, Kind) and base.section
]


def methods(base):
    """Return the functions of a base class that a kind may define."""
    return {
        name: function
        for name in dir(base)
        if inspect.isfunction(function := getattr(base, name))
        and function.__module__.startswith("dynamics_cli.")
        and not name.startswith("__")
        and not getattr(function, "__final__", False)
    }


def test_every_section_has_a_base():
    assert {*SECTIONS} <= {base.section for base in BASES}


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.__name__)
def test_a_wrong_signature_is_told_with_its_line(base):
    found = methods(base)
    assert found
    for name, function in found.items():

        def wrong(self, *, unknown_argument):
            """Take something that nobody gives."""

        line = wrong.__code__.co_firstlineno
        expected = ", ".join(inspect.signature(function).parameters)
        told = rf"^test_signatures.py:{line}: Own.{name}\(self, unknown_argument\) is called as"
        with pytest.raises(InputError, match=told) as error:
            refuse_signatures(type("Own", (base,), {name: wrong}))
        assert str(error.value).endswith(f"{name}({expected})")
        taken = type("Own", (base,), {name: lambda self, *given, **named: None})
        refuse_signatures(taken)


@pytest.mark.parametrize("section", SECTIONS)
def test_bundled_kinds_have_the_signatures_of_their_bases(section):
    for cls in all_kinds(section).values():
        refuse_signatures(cls)


def test_a_wrong_signature_of_a_base_of_its_own_is_told():
    with stranger_to_kinds():

        class Own(kinds.Measure):
            def measure(self, problem, state):  # type: ignore[no-untyped-def,override]
                return 0.0

        with pytest.raises(InputError, match=r"Mine.measure\(self, problem, state\) is called as"):

            class Mine(Own, kind="mine"):
                """A measure."""
