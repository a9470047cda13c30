"""`dyn audit`: which claims of figures hold under nulls, or change in longer training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynamics_cli.cli import arguments
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.output import TrainingBar, emit, emit_json, say
from dynamics_cli.cli.reproduce import NOT_REPRODUCED, SOME_FAILED, chosen_figures, tell_of
from dynamics_cli.errors import DynError
from dynamics_cli.text import text_table

if TYPE_CHECKING:
    from dynamics_cli.reproduction.audits import Audit, Longer

EXAMPLES = """\b
Examples:
  dyn audit boursier2022-fig2
  dyn audit saxe2014 --null untrained --null early
  dyn audit --all --null untrained --strict
  dyn audit saxe2014 --longer 4
"""


@documented("audit", epilog=EXAMPLES)
@click.argument("figures", nargs=-1, metavar="[FIGURE_OR_PAPER]...")
@click.option("--all", "everything", is_flag=True, help="All figures of all papers.")
@click.option("--null", "nulls", multiple=True, metavar="NAME")
@click.option(
    "--longer",
    "factor",
    type=float,
    metavar="N",
    help="Instead of nulls, train N times as long, and say which claims change.",
)
@click.option("--preset", type=click.Choice(["default", "full"]), default="default")
@arguments.set_option
@arguments.device_option
@arguments.out_option
@click.option(
    "--strict",
    is_flag=True,
    help="Exit code 5 when a claim holds under a null but shuffled, larger or smaller, and no"
    " entry of `passes` says why, or changes under --longer.",
)
@arguments.quiet_option
@arguments.json_option
def audit(
    *,
    figures: tuple[str, ...],
    everything: bool,
    nulls: tuple[str, ...],
    factor: float | None,
    preset: str,
    overrides: tuple[str, ...],
    device: str | None,
    out: Path | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    from dynamics_cli.reproduction.audit import audit, longer
    from dynamics_cli.reproduction.obtain import RunSource
    from dynamics_cli.reproduction.reproduce import one_by_one

    if nulls and factor is not None:
        raise click.UsageError("--null and --longer are two audits: take one of them")
    chosen = chosen_figures(figures, everything=everything)
    source = RunSource(
        device=device,
        messages=partial(say, quiet=quiet or as_json),
        progress=lambda name, total: TrainingBar(total, label=name, shown=not (quiet or as_json)),
    )
    results: dict[str, Audit | Longer | DynError] = {}
    options: dict[str, Any] = {"preset": preset, "overrides": overrides, "out": out}
    make: Callable[[str], Audit | Longer] = partial(audit, nulls=nulls, source=source, **options)
    if factor is not None:
        make = partial(longer, factor=factor, source=source, **options)
    for figure, outcome in one_by_one(chosen, make, overrides):
        results[figure] = outcome
        if isinstance(outcome, DynError):
            tell_of(figure, outcome, alone=len(chosen) == 1)
        elif not as_json:
            _report(outcome)
    done = [report for report in results.values() if not isinstance(report, DynError)]
    if as_json:
        emit_json([report.as_dict() for report in done])
    if len(done) < len(results):
        raise click.exceptions.Exit(SOME_FAILED)
    if not strict:
        return
    unexplained = [*chain.from_iterable(map(_unexplained, done))]
    for line in unexplained:
        say(line)
    if unexplained:
        raise click.exceptions.Exit(NOT_REPRODUCED)


def _unexplained(report: Audit | Longer) -> Iterator[str]:
    """Yield a line for each null under which claims hold that must fail or say why.

    Of longer training, a line for the claims that change.
    """
    from dynamics_cli.reproduction.audit import MUST_FAIL
    from dynamics_cli.reproduction.audits import Audit

    if not isinstance(report, Audit):
        if report.changed:
            yield f"{report.figure}: {report.summary}"
        return
    for null in MUST_FAIL:
        ids = report.survivors(null)
        if ids:
            verb = "holds" if len(ids) == 1 else "hold"
            yield (
                f"{report.figure}: under {null} {', '.join(ids)} {verb}: let the claim ask for"
                " training (`kit.given`), or say why in `passes` of the figure"
            )


def _report(report: Audit | Longer) -> None:
    from dynamics_cli.reproduction.audits import Audit

    header, rows = report.table()
    if not isinstance(report, Audit):
        emit(f"{report.figure}: {report.summary}\n")
        if rows:
            emit(text_table(header, rows) + "\n")
        return
    emit(
        f"{report.figure}: claims that networks decide: {len(report.claims)}, nulls:"
        f" {len(report.nulls)}\n"
    )
    if rows:
        emit(text_table(header, rows) + "\n")
    for outcome in report.nulls:
        if outcome.reason:
            emit(f"{outcome.null}: {outcome.reason}\n")
