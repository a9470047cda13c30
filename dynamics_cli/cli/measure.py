"""`dyn measure`: measures of a network of torch, at its weights or at checkpoints."""

from __future__ import annotations

import glob
import re
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from dynamics_cli import api
from dynamics_cli.cli.arguments import json_option, quiet_option
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import CountBar, emit, emit_json
from dynamics_cli.errors import DataMissingError, InputError

EXAMPLES = """\b
Examples:
  dyn measure --model net.py:make --data d.npz --measure sharpness --measure gradient_norm
  dyn measure --model net.py:make --checkpoints "ckpt/*.pt" --start ckpt/0.pt --data d.npz --loss mse \\
      --measure "{kind: sharpness, blocks: layer}" --measure distance -o table.csv
"""


@documented(api.measure, epilog=EXAMPLES)
@click.option(
    "--model", "named", required=True, metavar="FILE.py:NAME",
    help="A torch.nn.Module, or a function that returns it, in a Python file, which is executed.",
)  # fmt: skip
@click.option(
    "--data", required=True, type=click.Path(path_type=Path), metavar="FILE",
    help="An .npz with arrays x, y (and x_test, y_test) of any shape, or a .csv whose last column is y.",
)  # fmt: skip
@click.option(
    "--checkpoints", "patterns", multiple=True, metavar="PATTERN",
    help="State dicts written by torch.save, in the order of the numbers in their names; can be repeated.",
)  # fmt: skip
@click.option("--start", type=click.Path(path_type=Path), metavar="FILE", help="The state dict of the initial weights.")
@click.option(
    "--loss", default="cross_entropy", show_default=True, metavar="KIND",
    help="A kind, its keys as YAML, or FILE.py:NAME of a function of outputs and labels.",
)  # fmt: skip
@click.option(
    "--measure", "measures", multiple=True, metavar="KIND",
    help="A kind or its keys as YAML; can be repeated (default: train_loss, gradient_norm, sharpness).",
)  # fmt: skip
@click.option("--parameters", multiple=True, metavar="PATTERN")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    metavar="N",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the table as CSV.",
)  # fmt: skip
@quiet_option
@json_option
def measure(
    *, named: str, data: Path, patterns: tuple[str, ...], start: Path | None, loss: str, measures: tuple[str, ...],
    parameters: tuple[str, ...], output: Path | None, quiet: bool, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    checkpoints = sorted({file for pattern in patterns for file in _files(pattern)}, key=_natural) or None
    from dynamics_cli.datasets.files.tables import read_samples

    if not data.is_file():
        raise DataMissingError(f"--data {data}: there is no such file")
    if output is not None and (output.suffix != ".csv" or output.absolute() == data.absolute()):
        raise click.UsageError(f"--output {output}: the name of another .csv file is needed")
    samples: dict[str, Any] = {**read_samples(data)}
    shown = CountBar("measure", shown=not (quiet or as_json))
    # stdout belongs to our data, whatever the model prints
    with redirect_stdout(sys.stderr), shown as bar, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        model = _object(named, "--model")
        from torch.nn import Module

        table = api.measure(
            model if not callable(model) or isinstance(model, Module) else _called(model, named), **samples,
            loss=_object(loss, "--loss") if ".py:" in loss else loss, measures=measures or api.USUAL_MEASURES,
            checkpoints=checkpoints, start=start, parameters=parameters or None, progress=bar, **options,
        )  # fmt: skip
    for text in dict.fromkeys(str(one.message) for one in told):
        click.echo(f"Warning: {text}", err=True)
    if output is not None:
        from dynamics_cli.runs.store.files import save_csv

        save_csv(output, table.columns, (_cells(row, table.columns) for row in table))
    if as_json:
        emit_json(table)
    else:
        emit(str(table) if output is None else str(output))


def _cells(row: dict[str, Any], columns: list[str]) -> list[Any]:
    """Return the values of a row; an array as JSON."""
    from dynamics_cli.text import to_json

    values = (row.get(name, "") for name in columns)
    return ["".join(to_json(value).split()) if hasattr(value, "tolist") else value for value in values]


def _files(pattern: str) -> list[str]:
    if not (found := glob.glob(pattern, recursive=True)):  # noqa: PTH207 - patterns may be absolute
        raise DataMissingError(f"--checkpoints {pattern}: there is no such file")
    return found


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key by which names are in the order of their numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _object(text: str, option: str) -> Any:
    """Return the object of a name in a Python file.

    Raises InputError: there is no such file or name.
    """
    path, _, name = text.rpartition(":")
    if not path.endswith(".py"):
        raise click.UsageError(f"{option} {text}: FILE.py:NAME is needed, such as net.py:make")
    from dynamics_cli.errors import did_you_mean
    from dynamics_cli.kinds.registry import load

    known = vars(load(Path(path), option))
    if name not in known:
        raise InputError(f"{option} {text}: {path} has no {name!r}{did_you_mean(name, known)}")
    return known[name]


def _called(make: Any, named: str) -> Any:
    try:
        return make()
    except (Exception, SystemExit) as error:
        raise InputError(f"--model {named}: {type(error).__name__}: {error}") from error
