import re

import click
import pytest

from dynamics_cli.cli import COMMANDS, main


def walk(command, path=()):
    """Every command of the tree, groups included."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, name
            assert below.name == name
            yield from walk(below, (*path, name))


TREE = dict(walk(main))


@pytest.mark.parametrize("path", TREE, ids=" ".join)
def test_help_tells_what_a_command_does_with_an_example(path, dyn):
    answer = dyn(*path, "--help")
    assert answer.code == 0
    assert answer.err == ""
    called = " ".join(("dyn", *path))
    assert answer.out.startswith(f"Usage: {called} ")
    _, found, examples = answer.out.partition("Example")
    assert found
    assert "\\b" not in answer.out  # what keeps click from wrapping examples is taken, not shown
    assert re.search(rf"\b{called}\b", examples)
    assert dyn(*path, "-h") == answer
    assert max(map(len, answer.out.splitlines())) <= 80
    options = [parameter for parameter in TREE[path].params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []
    if not isinstance(TREE[path], click.Group):
        assert "Options:" not in answer.out
        assert "How much is said:" in answer.out


def test_every_command_stands_below_one_heading(dyn):
    listed = re.findall(r"^  (\w+)  ", dyn("--help").out.partition("Run:")[2], re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


def test_no_command_shows_the_help(dyn):
    answer = dyn()
    assert answer.code == 2
    assert "Look:" in answer.out + answer.err


LOADED = """
import contextlib, io, sys
from dynamics_cli.cli import COMMANDS, main
for words in sys.stdin.read().splitlines():
    with contextlib.redirect_stdout(io.StringIO()):
        main(words.split(), standalone_mode=False)
    heavy = {"torch", "matplotlib", "numpy", "pydantic", "scipy", "yaml", "PIL", "tqdm", "numba"}
    print(words, *(heavy & set(sys.modules)))
"""
LIGHT = {  # commands, and what none of them loads
    ("--help", "train --help", "data --help", "config --help"): {
        "torch",
        "matplotlib",
        "numpy",
        "pydantic",
        "scipy",
        "yaml",
        "PIL",
        "tqdm",
    },
    ("list figures", "list papers", "list configs"): {"torch", "matplotlib", "numpy", "pydantic"},
    ("list kinds", "list runs", "show toy.yaml"): {"torch", "matplotlib", "numba"},
    ("config check toy.yaml",): {"torch", "matplotlib"},
}


def test_commands_load_no_more_than_they_need(shell):
    commands = "\n".join(command for group in LIGHT for command in group)
    lines = iter(shell(code=LOADED, input=commands).out.splitlines())
    for group, never in LIGHT.items():
        for command in group:
            line = next(lines)
            assert line.startswith(command)
            assert not never & set(line.removeprefix(command).split()), line
