"""From a figure's id to its files: runs, evidence, claims, drawing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from dynamics_cli._bundled import CONFIGS
from dynamics_cli.config.reader import Overrides, override_texts
from dynamics_cli.errors import DynError, InputError, UsageError, did_you_mean
from dynamics_cli.kinds.registry import place_of
from dynamics_cli.notebook import html_picture, html_table
from dynamics_cli.reproduction.catalogue import EXPERIMENTS, load_figure
from dynamics_cli.reproduction.claims import (
    FEWEST_SEEDS,
    Claim,
    ClaimOverSeeds,
    explained,
    over_seeds,
)
from dynamics_cli.reproduction.document import SEEDS, beside, document_of, figures_folder
from dynamics_cli.reproduction.figure import Figure
from dynamics_cli.reproduction.obtain import Messages, ObtainedRun, RunSource, evidence_of
from dynamics_cli.reproduction.settings import chosen_by_outcome, origins_of
from dynamics_cli.runs.code import code
from dynamics_cli.runs.info import provenance
from dynamics_cli.runs.store import files, manifest
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.text import Table, cell
from dynamics_cli.training.many.train import ProgressDisplay
from dynamics_cli.training.signals import Interrupted

T = TypeVar("T")
PRESETS = ("default", "full")
"""Presets that every figure understands: a preset that it does not declare is its default."""


@dataclass(frozen=True)
class FigureResult:
    """A reproduced figure."""

    figure: str
    """Its id, and the variant's id if it is one: the name of its files."""
    files: list[Path]
    """Absolute paths of the files written: pictures, a table, the JSON of seeds, the JSON."""
    over_seeds: list[ClaimOverSeeds]
    """The claims with the results of all seeds."""
    runs: list[ObtainedRun]
    """The runs of all seeds."""
    table: tuple[list[str], list[list[str]]] | None = None
    """Header and rows of a table."""
    numbers: dict[str, float] = field(default_factory=dict)
    """Numbers without a verdict by name, of the first seed."""
    seconds: float = 0.0
    """Wall time of the whole."""

    @property
    def claims(self) -> list[Claim]:
        """The claims as the seeds that the configs name gave them."""
        return [claim.first for claim in self.over_seeds]

    @property
    def reproduced(self) -> bool:
        """Whether no claim and no theory is missed, over the seeds where there are several."""
        return not any(claim.missed for claim in self.over_seeds)

    @property
    def diverged(self) -> list[ObtainedRun]:
        """Runs of later seeds that diverged; no claim counts as reproduced for these seeds."""
        return [run for run in self.runs if run.diverged]

    @property
    def chosen_by_outcome(self) -> list[str]:
        """Settings that were chosen with results of several settings at hand."""
        configs = {run.wanted.config: CONFIGS / run.wanted.config for run in self.runs}
        return chosen_by_outcome(origins_of(self.figure, configs))

    @property
    def rows(self) -> Table:
        """A row a claim: statement, source, numbers, verdict, and the results of all seeds."""
        return Table(claim.as_dict() for claim in self.over_seeds)

    def _repr_html_(self) -> str:
        """Show the pictures and the verdicts in a notebook."""
        pictures = [
            html_picture(file.read_bytes(), file.stem)
            for file in self.files
            if file.suffix == ".png"
        ]
        rows = [
            [cell(row.get(name)) for name in ("statement", "verdict", "measured", "expected")]
            for row in self.rows
        ]
        table = html_table(["claim", "verdict", "measured", "expected"], rows)
        return f"<h4>{escape(self.figure)}</h4>{''.join(pictures)}{table}"

    def as_dict(self) -> dict[str, Any]:
        """Return the figure's entry in the output of `--json`."""
        return {
            "figure": self.figure,
            "files": [str(path) for path in self.files],
            "claims": [claim.as_dict() for claim in self.over_seeds],
            "runs": [run.as_dict() for run in self.runs],
            "numbers": self.numbers,
            "seconds": self.seconds,
        }


def reproduce(
    figure: str,
    *,
    variant: str | None = None,
    preset: str = "default",
    overrides: Overrides = (),
    seeds: int = 1,
    device: str | None = None,
    out: str | Path | None = None,
    force: bool = False,
    formats: Sequence[str] = ("pdf", "png"),
    progress: ProgressDisplay | None = None,
    messages: Messages | None = None,
    source: RunSource | None = None,
) -> FigureResult:
    """Reproduce figures of papers and check their claims.

    Trains or reuses the runs that a figure needs, checks what the paper claims, and writes picture
    and JSON.

    Args:
        figure: its id, such as `boursier2022-fig2`.
        variant: the same figure of other runs, such as `flow`; its files are named
            `<figure>-<variant>`.
        preset: how much is computed; `full` where the figure has it.
        overrides: as `load_config` takes them; they change all configs of the figure.
        seeds: number of seeds for the claims; each config's seed and that seed plus 1, 2, ...; the
            first is drawn. What several give is written to `<figure>.seeds.json`.
        device: where to compute (default: as the configs say).
        out: folder of the files (default: outputs/figures).
        force: train again, even when the runs are there.
        formats: format of the pictures.
        progress: shows the progress of training runs.
        messages: called with messages for the user.
        source: gives the runs, in place of one made of `device`, `force` and the rest.

    Returns:
        The result; `rows` has a row for each claim, `files` the paths of the files written.

    Raises:
        UsageError: there is no such figure, variant, preset or format; two or three seeds, which
            decide nothing; or somebody else's file has the name of one of the figure.
        ConfigError: the overrides do not fit.
        DataMissingError: data that the figure needs are not there.
        RunError: a run cannot go on, a run of the first seed diverged, or a file cannot be written.
    """
    from dynamics_cli.plotting.style import check_formats, rendered, style

    began = time.monotonic()
    if 1 < seeds < FEWEST_SEEDS:
        raise UsageError(f"--seeds {seeds} gives no verdict: take {FEWEST_SEEDS} at least")
    chosen = chosen_figure(figure, preset, variant)
    changes = override_texts(overrides)
    check_formats(formats)
    source = source or RunSource(device, force, progress, messages)
    folder = figures_folder(out).absolute()
    file = folder / f"{chosen.id}.json"
    endings = [*formats, "json", *["csv"] * (chosen.table is not None)]
    names = [f"{chosen.id}.{ending}" for ending in endings]
    names += [beside(file, SEEDS).name] * (seeds > 1)
    entry, copies = code()
    manifest.refuse_foreign(folder, [*names, *copies])  # before hours of training

    runs = source.obtain(chosen.wanted(preset), changes)
    evidence = evidence_of(chosen, runs)
    claims = [chosen.claims(evidence)]
    with style():  # also for figures that draw without a panel of ours
        drawing = chosen.draw(evidence)
    table = None
    if chosen.table is not None:
        table = chosen.table(evidence)
    numbers: dict[str, float] = {}
    if chosen.numbers is not None:
        numbers = {name: float(value) for name, value in chosen.numbers(evidence).items()}
    of_one = time.monotonic() - began

    more: list[ObtainedRun] = []
    for of_seed in source.obtain_seeds(
        chosen.wanted(preset, first_seed=False), changes, range(1, seeds)
    ):
        more += of_seed
        claims.append(_claims_of_seed(chosen, of_seed))
    joined = explained(over_seeds(claims), chosen.missed)

    about: dict[str, Any] = {
        "figure": chosen.id,
        "paper": chosen.paper,
        "preset": preset,
        "overrides": changes,
        "provenance": {**provenance(), "code": entry},
    }
    described = {"title": chosen.title, "caption": chosen.caption, "numbers": numbers}
    pictures = rendered(drawing, chosen.id, formats)
    if table is not None:
        pictures[f"{chosen.id}.csv"] = files.csv_of(*table)
    contents = dict(pictures)
    if len(claims) > 1:
        over = {
            **about,
            "seeds": len(claims),
            "diverged": [run.seed for run in more if run.diverged],
            "claims": [claim.as_dict() for claim in joined],
        }
        contents[beside(file, SEEDS).name] = document_of(over, {}, [*runs, *more], folder)
    took = {"provenance": {**about["provenance"], "seconds": round(of_one, 1)}}
    of_first = {
        **about,
        **described,
        **took,
        "claims": [claim.first.model_dump() for claim in joined],
    }
    contents[file.name] = document_of(of_first, pictures, runs, folder)
    with run_lock(folder):
        written = manifest.write_listed(folder, {**copies, **contents})[len(copies) :]
    seconds = time.monotonic() - began
    return FigureResult(chosen.id, written, joined, [*runs, *more], table, numbers, seconds)


def _claims_of_seed(figure: Figure, runs: Sequence[ObtainedRun]) -> list[Claim]:
    """Return the claims of a later seed; none where a run diverged."""
    if any(run.diverged for run in runs):
        return []
    return figure.claims(evidence_of(figure, runs))


def reproduce_figures(
    figure_ids: Sequence[str],
    *,
    variant: str | None = None,
    device: str | None = None,
    force: bool = False,
    progress: ProgressDisplay | None = None,
    messages: Messages | None = None,
    **options: Any,
) -> Iterator[tuple[str, FigureResult | DynError]]:
    """Reproduce several figures one by one, and name each; a figure that fails gives its error.

    All runs are trained first; shared runs are trained once, even under `force`. Takes the options
    of `reproduce`. An interruption by a signal ends everything.
    """
    source = RunSource(device, force, progress, messages)
    preset = options.get("preset", "default")
    overrides = override_texts(options.get("overrides", ()))
    if len(figure_ids) > 1:
        wanted = []
        for figure_id in figure_ids:
            with suppress(Exception):  # the figure says so in its turn
                wanted.append(chosen_figure(figure_id, preset, variant).wanted(preset))
        try:
            source.train(wanted, overrides)
        except Interrupted:
            raise
        except Exception as error:  # so does the figure of this run
            if messages is not None:
                messages(f"each figure trains its own runs: {_failure(error)}")
    make = partial(reproduce, variant=variant, source=source, messages=messages, **options)
    ending = "" if variant is None else f"-{variant}"
    for figure_id, result in one_by_one(figure_ids, make, overrides):
        yield figure_id + ending, result


def one_by_one(
    figure_ids: Sequence[str], make: Callable[[str], T], overrides: Sequence[str]
) -> Iterator[tuple[str, T | DynError]]:
    """Yield each figure with the result of `make`, or with its error.

    Raises Exception: the code of the only figure fails without `overrides`; its traceback is shown.
    """
    for figure_id in figure_ids:
        try:
            yield figure_id, make(figure_id)
        except Interrupted:
            raise
        except DynError as error:
            yield figure_id, error
        except Exception as error:
            if len(figure_ids) == 1 and not overrides:
                raise
            yield figure_id, _failure(error, overrides)


def _failure(error: Exception, overrides: Sequence[str] = ()) -> InputError:
    """Return an error in the code of a figure, with its line."""
    place = (
        place_of(error, f"{EXPERIMENTS}.") or place_of(error) or f"{type(error).__name__}: {error}"
    )
    changed = ""
    if overrides:
        changed = f" (the runs have --set {' --set '.join(overrides)})"
    return InputError(f"the figure's code fails: {place}{changed}")


def chosen_figure(figure_id: str, preset: str, variant: str | None = None) -> Figure:
    """Return a figure, or a variant of it.

    Raises UsageError: there is no such figure, preset or variant.
    """
    figure = load_figure(figure_id)
    known = [*PRESETS, *(name for name in figure.presets if name not in PRESETS)]
    if preset not in known:
        raise UsageError(
            f"no preset {preset!r}: choose from {', '.join(known)}{did_you_mean(preset, known)}"
        )
    if variant is None:
        return figure
    return figure.as_variant(variant)
