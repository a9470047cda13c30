"""`dyn reproduce`: the figures of papers, with their claims."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from dynamics_cli.cli import arguments
from dynamics_cli.cli.groups import documented
from dynamics_cli.cli.guard import tell
from dynamics_cli.cli.output import TrainingBar, emit, emit_files, emit_json, say
from dynamics_cli.errors import DynError
from dynamics_cli.text import number, text_table

if TYPE_CHECKING:
    from dynamics_cli.reproduction.reproduce import FigureResult

    Reproduced = FigureResult | DynError

NOT_REPRODUCED = 5
SOME_FAILED = 6
EXAMPLES = """\b
Examples:
  dyn reproduce boursier2022-fig2
  dyn reproduce boursier2022-fig2 --variant flow
  dyn reproduce boursier2022 --seeds 10 --strict
  dyn reproduce boursier2022-fig3 --set architecture.width=200 --out wide
"""


@documented("reproduce", epilog=EXAMPLES)
@click.argument("figures", nargs=-1, metavar="[FIGURE_OR_PAPER]...")
@click.option("--all", "everything", is_flag=True, help="All figures of all papers.")
@click.option("--variant", metavar="NAME")
@click.option("--preset", type=click.Choice(["default", "full"]), default="default")
@arguments.set_option
@click.option("--seeds", type=click.IntRange(1, 10_000), default=1, metavar="N")
@arguments.device_option
@arguments.out_option
@arguments.force_option
@click.option(
    "--strict",
    is_flag=True,
    help="Exit code 5 when a claim or theory is not reproduced.",
)
@arguments.format_option(("pdf", "png"))
@arguments.quiet_option
@arguments.json_option
def reproduce(
    *,
    figures: tuple[str, ...],
    everything: bool,
    variant: str | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    from dynamics_cli.reproduction.reproduce import reproduce_figures

    chosen = chosen_figures(figures, variant, everything=everything)
    results: dict[str, Reproduced] = {}
    silent = quiet or as_json
    done = reproduce_figures(
        chosen,
        variant=variant,
        messages=partial(say, quiet=silent),
        progress=lambda name, total: TrainingBar(total, label=name, shown=not silent),
        **options,
    )
    for figure, outcome in done:
        results[figure] = outcome
        if isinstance(outcome, DynError):
            tell_of(figure, outcome, alone=len(chosen) == 1)
        elif not as_json:
            _report(figure, outcome)
    if as_json:
        emit_json([_document(figure, outcome) for figure, outcome in results.items()])
    elif len(chosen) > 1:
        _summarize(results)
    _leave(results, strict=strict)


def chosen_figures(
    names: tuple[str, ...], variant: str | None = None, *, everything: bool
) -> list[str]:
    """Return the ids of the figures asked for; of papers, those that have the variant.

    Raises UsageError: there is no such figure, paper or variant, or not exactly one way of asking
    was used.
    """
    from dynamics_cli.reproduction import catalogue

    if bool(names) == everything:
        raise click.UsageError("say which figures: figures, papers, or --all (`dyn list figures`)")
    papers = catalogue.papers()
    chosen = []
    for name in names or papers:
        if name in papers:
            chosen += [
                figure.id
                for figure in catalogue.figures(name)
                if variant is None or variant in figure.variants
            ]
        else:
            chosen.append(catalogue.find(name).id)
    if not chosen:
        raise click.UsageError(
            f"no figure asked for has a variant {variant!r} (`dyn list figures`)"
        )
    return list(dict.fromkeys(chosen))


def tell_of(figure: str, error: DynError, *, alone: bool) -> None:
    """Say that a figure failed; raise the error of the only figure asked for."""
    if alone:
        raise error
    say(f"{figure} failed:")
    tell(error)


def _report(figure: str, outcome: FigureResult) -> None:
    """Print a figure as soon as it is done."""
    from dynamics_cli.reproduction.claims import claims_text, summary

    emit(f"{figure}: {summary(outcome.over_seeds)} in {outcome.seconds:.1f} s\n")
    if outcome.table is not None:
        emit(text_table(*outcome.table) + "\n")
    emit(claims_text(outcome.over_seeds) + "\n")
    for run in outcome.diverged:
        emit(f"{run.role} diverged for seed {run.seed}: its claims count as not reproduced\n")
    if outcome.chosen_by_outcome:
        begin = "A setting was chosen by outcome: "
        emit("".join(f"{begin}{setting}\n" for setting in outcome.chosen_by_outcome))
    if outcome.numbers:
        emit("".join(f"{name}: {number(value)}\n" for name, value in outcome.numbers.items()))
    emit_files(outcome.files)
    emit("")


def _document(figure: str, outcome: Reproduced) -> dict[str, Any]:
    """Return a figure as `--json` shows it; a failed figure has its message under `error`."""
    if isinstance(outcome, DynError):
        return {"figure": figure, "files": [], "claims": [], "runs": [], "error": str(outcome)}
    return outcome.as_dict()


def _summarize(results: dict[str, Reproduced]) -> None:
    """Print one line for each of several figures."""
    from dynamics_cli.reproduction.claims import summary

    rows = [
        [figure, "failed" if isinstance(outcome, DynError) else summary(outcome.over_seeds)]
        for figure, outcome in results.items()
    ]
    emit(text_table(["figure", "outcome"], rows))


def _leave(results: dict[str, Reproduced], *, strict: bool) -> None:
    """Exit with the code of the worst that happened."""
    failed = [figure for figure, outcome in results.items() if isinstance(outcome, DynError)]
    missed = [
        figure
        for figure, out in results.items()
        if not isinstance(out, DynError) and not out.reproduced
    ]
    if failed:
        say(f"{len(failed)} of {len(results)} figures failed: {', '.join(failed)}")
        raise click.exceptions.Exit(SOME_FAILED)
    if missed and strict:
        say(f"claims not reproduced in {', '.join(missed)}")
        raise click.exceptions.Exit(NOT_REPRODUCED)
