"""Names of data sets on the command line."""

from __future__ import annotations

import click

NAMES = ("mnist-subset", "mnist", "dogs-vs-cats")
"""As `dyn data list` shows them."""


def complete_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the data sets whose names begin so."""
    return [name for name in NAMES if name.startswith(incomplete)]
