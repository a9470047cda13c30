"""`dyn audit`: which claims of figures hold under nulls, or change in longer training."""

from __future__ import annotations

from collections.abc import Iterator
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
    from dynamics_cli.reproduction.audits import Audit

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
    type=float,
    metavar="N",
    help="Train N times as long, and say which claims change.",
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
    longer: float | None,
    preset: str,
    overrides: tuple[str, ...],
    device: str | None,
    out: Path | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    from dynamics_cli.reproduction.audit import audit
    from dynamics_cli.reproduction.obtain import RunSource
    from dynamics_cli.reproduction.reproduce import one_by_one

    chosen = chosen_figures(figures, everything=everything)
    source = RunSource(
        device=device,
        messages=partial(say, quiet=quiet or as_json),
        progress=lambda name, total: TrainingBar(total, label=name, shown=not (quiet or as_json)),
    )
    results: dict[str, Audit | DynError] = {}
    options: dict[str, Any] = {"preset": preset, "overrides": overrides, "out": out}
    make = partial(audit, nulls=nulls, longer=longer, source=source, **options)
    for figure, outcome in one_by_one(chosen, make, overrides):
        results[figure] = outcome
        if isinstance(outcome, DynError):
            tell_of(figure, outcome, alone=len(chosen) == 1)
        elif not as_json:
            _report(outcome)
    done = [report for report in results.values() if not isinstance(report, DynError)]
    if as_json:
        emit_json([report.model_dump() for report in done])
    if len(done) < len(results):
        raise click.exceptions.Exit(SOME_FAILED)
    if not strict:
        return
    unexplained = [*chain.from_iterable(map(_unexplained, done))]
    for line in unexplained:
        say(line)
    if unexplained:
        raise click.exceptions.Exit(NOT_REPRODUCED)


def _unexplained(report: Audit) -> Iterator[str]:
    """Yield a line for each null under which claims hold that must fail or say why.

    Of longer training, a line for the claims that change.
    """
    from dynamics_cli.reproduction.audit import MUST_FAIL

    if changed := report.changed():
        yield f"{report.figure}: longer training changes {', '.join(changed)}"
    for null in MUST_FAIL:
        ids = report.survivors(null)
        if ids:
            verb = "holds" if len(ids) == 1 else "hold"
            yield (
                f"{report.figure}: under {null} {', '.join(ids)} {verb}: let the claim ask for"
                " training (`kit.given`), or say why in `passes` of the figure"
            )


def _report(report: Audit) -> None:
    header, rows = report.table()
    emit(
        f"{report.figure}: claims that networks decide: {len(report.claims)}, nulls:"
        f" {len(report.nulls)}\n"
    )
    if rows:
        emit(text_table(header, rows) + "\n")
    for outcome in report.nulls:
        if outcome.remark:
            emit(f"{outcome.remark}\n")
