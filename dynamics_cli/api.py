"""The commands as functions: `import dynamics_cli as dyn`, then `dyn.train(...)` is `dyn train ...`.

The docstrings are the help texts of the commands too: an option shows the description of its argument up to the first
semicolon or full stop. Importing this module is light; each function imports what it needs. Lists of things are tables
(see `text.Table`), and results that hold more than a table have one as `.rows`; `pandas.DataFrame` takes both.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.text import Table, jsonable

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure

    from dynamics_cli.analysis import Prediction
    from dynamics_cli.config import RunConfig
    from dynamics_cli.config.reader import Overrides
    from dynamics_cli.datasets.files.store import Published
    from dynamics_cli.instruments import Measured
    from dynamics_cli.pages import Page
    from dynamics_cli.plotting.time_axis import LogAxes
    from dynamics_cli.recorder import Recorder
    from dynamics_cli.reproduction.audit import Audit
    from dynamics_cli.reproduction.reproduce import FigureResult
    from dynamics_cli.runs.compare import Comparison
    from dynamics_cli.runs.run import Run
    from dynamics_cli.sweeps.directory import Sweep
    from dynamics_cli.sweeps.jobs import PlannedSweep
    from dynamics_cli.sweeps.train import ProgressDisplay
    from dynamics_cli.training.loop import Progress
    from dynamics_cli.training.prospect import Prospect

    Config = RunConfig | str | os.PathLike[str] | Mapping[str, Any]
    Which = Run | str | Path
    Drawn = Which | Sweep | Sequence[Which]
    Messages = Callable[[str], None]
    """Called with sentences for the user."""
    Counted = Callable[[int, int | None], None]
    """Called with how many of how many (None: not known) are done."""

# fmt: off
__all__ = [
    "Recorder", "add_data", "animate", "audit", "compare", "describe", "explain", "fetch_data", "list_configs",
    "list_figures", "list_kinds", "list_panels", "list_papers", "list_runs", "list_sweeps",
    "load_config", "load_run", "measure", "page", "plan", "plan_sweep", "plan_sweep_needs", "plot", "predictions",
    "reproduce", "sweep", "train", "use", "verify",
]
# fmt: on


def __getattr__(name: str) -> Any:
    if name != "Recorder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dynamics_cli.recorder import Recorder

    return Recorder


# --- configs and kinds


def load_config(config: Config, overrides: Overrides = (), **options: Any) -> RunConfig:
    """Check a config without running it, and return it with every default.

    All problems are told at once. The command also builds the network, and checks the weights and the measures that the
    config names; missing data sets of images are no mistake.

    Args:
        config: a YAML or JSON file, or the name of a bundled config such as `boursier2022/orthogonal`; in Python also
            the same content as a mapping, or a loaded config.
        overrides: a changed setting, such as `optimizer.lr=0.01`, the value as YAML; in Python a mapping
            `{"seed": 3, "optimizer.lr": 0.1}` or a list of texts.
        options: top-level settings that replace the config's, e.g. `seed=3, device="cpu"` (None: as it is), and
            `check_files_exist=False` where data files need not be there.

    Raises ConfigError: it is not valid; all problems at once, in `problems`.
    """
    from dynamics_cli.config import RunConfig
    from dynamics_cli.config import load_config as load
    from dynamics_cli.config.dump import to_plain
    from dynamics_cli.config.reader import override_texts
    from dynamics_cli.reproduction.catalogue import config_file

    changes = override_texts(overrides)
    if isinstance(config, RunConfig):
        unchanged = not changes and all(value is None for value in options.values())
        return config if unchanged else load(to_plain(config), changes, **options)
    return load(config if isinstance(config, Mapping) else config_file(os.fspath(config)), changes, **options)


def use(path: str | Path) -> None:
    """Load a file of kinds or the folder of a paper, here and in processes that are started later: `dyn --with PATH`.

    A file that was edited since is loaded anew.

    Raises InputError: it cannot be imported.
    """
    from dynamics_cli.kinds.registry import use

    use(path)


def list_kinds(section: str | None = None) -> Table:
    """List the kinds that a config can name.

    Of all sections, or of one; `dyn explain SECTION.KIND` says more. Kinds that serve one paper are left out. The
    columns are section, kind, where it comes from, and what it is.

    Raises UsageError: there is no such section.
    """
    from dynamics_cli.config.describe import list_kinds

    return list_kinds(section)


def explain(kind: str) -> str:
    """Explain a kind or a section: its purpose, its keys, an example.

    Args:
        kind: `section.kind`, the kind alone where only one section has it, or a section such as `record`, `sweep`,
            `dataset`, or the whole `config`.

    Raises UsageError: there is no such kind or section; the message names the closest one.
    """
    from dynamics_cli.config.describe import explain

    return explain(kind)


def list_configs() -> Table:
    """List the bundled configs.

    Commands take their names as well as files. The columns are name, path, and the first line of comment.
    """
    from dynamics_cli.reproduction.catalogue import list_configs

    return list_configs()


# --- training


def train(
    config: Config,
    overrides: Overrides = (),
    *,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    wait: bool = True,
    measures: Sequence[str | Mapping[str, Any] | Callable[[Any], Any]] | None = None,
    progress: Progress | None = None,
    messages: Messages | None = None,
    **settings: Any,
) -> Run:
    """Train the network of a config.

    The same config is the same run: a finished run is shown again, not trained again.

    Args:
        config: as `load_config` takes it.
        overrides: as `load_config` takes them.
        out: the run directory itself (default: named after the config below outputs/runs).
        resume: continue an interrupted run.
        force: train again, even when the run is there.
        wait: wait for another process that trains the same run, or raise `RunError`.
        measures: recorded beside the weights, instead of the config's: names, or functions of a state
            (`kinds.State`: parameters, network, start, problem, iteration) that give a number or an array.
        progress: called now and then with the iteration reached and the last loss.
        messages: told that another process is waited for.
        settings: top-level settings, such as `seed=3, device="cpu", backend="torch", dtype="float64"`.

    Raises:
        ConfigError: the config is not valid; all problems at once.
        DynError: any other mistake that a user can mend.
    """
    from dynamics_cli.training.session import obtain_run, plan_run

    loaded = load_config(config, overrides, **settings)
    if measures is not None:
        from dynamics_cli.recording.measures import measure_of

        given = [measure_of(measure) if callable(measure) else measure for measure in measures]
        record = type(loaded.record).model_validate({**dict(loaded.record), "measures": given})
        loaded = loaded.model_copy(update={"record": record})
    plan = plan_run(loaded, None if out is None else Path(out))
    return obtain_run(plan, resume=resume, force=force, wait=wait, progress=progress, on_wait=messages).run


def plan(
    config: Config,
    overrides: Overrides = (),
    *,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    **settings: Any,
) -> Prospect:
    """Return the plan of `train` for the same arguments, and its needs: `dyn train --dry-run`.

    Raises as `train`; RunError too where the disk has less room than the run needs.
    """
    from dynamics_cli.training.prospect import prospect
    from dynamics_cli.training.session import plan_run

    config = load_config(config, overrides, **settings)
    plan = plan_run(config, None if out is None else Path(out))
    return prospect(plan, resume=resume, force=force)


def sweep(
    config: Config,
    grid: Mapping[str, Any] | Iterable[str] = (),
    *,
    let: Mapping[str, str] | Iterable[str] = (),
    seeds: int | None = None,
    overrides: Overrides = (),
    record: str | None = None,
    workers: int | None = None,
    shard: tuple[int, int] | None = None,
    executor: Executor | None = None,
    out: str | Path | None = None,
    progress: Counted | None = None,
    messages: Messages | None = None,
    **settings: Any,
) -> Sweep:
    """Train a config over a grid and several seeds.

    The grid is the section `sweep` of the config (keys grid, let, seeds, record), options, or both; an option
    replaces the values that the section has for a setting. Jobs of equal shape are trained together, the others in
    processes of their own. The same sweep again skips jobs that are done; a job that fails does not stop the others.

    Args:
        config: as `load_config` takes it.
        grid: setting and its values, such as `optimizer.lr=0.1:10:log:25`; in Python a mapping to sequences or ranges,
            or a list of texts.
        let: setting and the expression that computes it, such as `optimizer.lr=0.1 / initialization.scale**2`.
        seeds: seeds per grid point (default: as in the section, or 1).
        overrides: as `load_config` takes them.
        record: how much each job keeps (default: all, unless that exceeds `record.limit_gib`); `light` is its ends and
            about a thousand losses, `ends` its ends, `config` all that the config says.
        workers: processes for jobs that cannot be batched (default: one per core).
        shard: one of N parts to train; the command without it trains the rest and writes the table. In Python
            `(3, 50)` is the third of fifty parts.
        executor: any `concurrent.futures.Executor` instead of local processes, such as one of a Dask cluster.
        out: directory of the sweep (default: named after it below outputs/sweeps).
        progress: called with the number of jobs that are done, and of all.
        messages: told that no worker is there.
        settings: top-level settings of all jobs; `seed` is the first one.

    Returns:
        The sweep; `rows` has one row a job, those that failed or diverged included.

    Raises:
        ConfigError: a point of the grid is not a valid config.
        UsageError: the grid makes no sense, or the directory holds another sweep.
    """
    from dynamics_cli.sweeps.sweep import run_sweep

    planned = plan_sweep(
        config, grid, let=let, seeds=seeds, overrides=overrides, record=record, messages=messages,
        **settings,
    )  # fmt: skip
    total = len(planned) if shard is None else None
    return run_sweep(
        planned,
        out=None if out is None else Path(out),
        shard=shard,
        executor=executor,
        workers=workers,
        report=None if progress is None else lambda done: progress(done, total),
        messages=messages,
    )


def plan_sweep_needs(
    config: Config, grid: Mapping[str, Any] | Iterable[str] = (), *, out: str | Path | None = None, **plan: Any
) -> dict[str, Any]:
    """Return the plan of `sweep`, and its needs: `dyn sweep --dry-run`; takes the arguments of `sweep`.

    Raises as `sweep`.
    """
    from dynamics_cli.sweeps.sweep import prospect

    return prospect(plan_sweep(config, grid, **plan), None if out is None else Path(out))


def plan_sweep(
    config: Config,
    grid: Mapping[str, Any] | Iterable[str] = (),
    *,
    let: Mapping[str, str] | Iterable[str] = (),
    seeds: int | None = None,
    overrides: Overrides = (),
    record: str | None = None,
    messages: Callable[[str], object] | None = None,
    **settings: Any,
) -> PlannedSweep:
    """Return the jobs of a sweep, a list of settings and validated configs.

    Takes the arguments of `sweep` and raises its errors.
    """
    from dynamics_cli.config import RunConfig
    from dynamics_cli.config.dump import to_plain
    from dynamics_cli.config.reader import override_texts
    from dynamics_cli.reproduction.catalogue import config_file
    from dynamics_cli.sweeps.expressions import parse_let
    from dynamics_cli.sweeps.grid import axis_of, parse_axis
    from dynamics_cli.sweeps.jobs import PlannedSweep, read_sweep_section

    source: Any = to_plain(config) if isinstance(config, RunConfig) else config
    source = source if isinstance(source, Mapping) else config_file(os.fspath(source))
    texts = override_texts(overrides)
    of_section, section = read_sweep_section(source, texts)
    if isinstance(grid, Mapping):
        given = {key: values if isinstance(values, str) else jsonable(list(values)) for key, values in grid.items()}
        axes = [axis_of(key, values) for key, values in given.items()]
    else:
        axes = [parse_axis(text) for text in grid]
    axes = [*(axis for axis in of_section if axis.key not in {new.key for new in axes}), *axes]
    expressions = {**section.let, **(let if isinstance(let, Mapping) else dict(map(parse_let, let)))}
    return PlannedSweep(
        source, texts, axes, let={key: str(text) for key, text in expressions.items()},
        seeds=section.seeds if seeds is None else seeds, record=record or section.record, messages=messages, **settings,
    )  # fmt: skip


# --- runs


def load_run(run: Which) -> Run:
    """Open a run for reading.

    Args:
        run: a directory, the (start of the) name of a run below outputs, `latest`, SWEEP:k for job k of a sweep,
            or DIR:k for replica k of runs trained together.

    Raises:
        UsageError: several runs begin so; the message names them.
        RunError: there is no such run, or it is damaged.
    """
    from dynamics_cli.sweeps.find import open_run

    return open_run(run, together=True)


def list_runs(root: str | Path | None = None, *, statuses: Iterable[str] = ()) -> Table:
    """List the runs that are kept.

    `size` is in bytes, `modified` in seconds since 1970.

    Args:
        root: where they are; by default below `outputs/runs`.
        statuses: only runs of this status.

    Raises UsageError: there is no such status.
    """
    from dynamics_cli.sweeps.find import list_runs

    return list_runs(root, statuses=statuses)


def list_sweeps(root: str | Path | None = None) -> Table:
    """List the sweeps that are kept, finished or not.

    The columns are path, status, jobs, and how many ended in which way; `root` is by default `outputs/sweeps`.
    """
    from dynamics_cli.sweeps.find import list_sweeps

    return list_sweeps(root)


def describe(run: Which | Sweep) -> dict[str, Any]:
    """Show a run, a sweep or a resolved config.

    Of a sweep: how far it is, and failures by their messages. Of a run: status, final numbers, settings and
    files. Of a config: every key with its value, and the settings that are swept.

    Args:
        run: a directory, `latest`, the (start of the) name of a run or a sweep, or (for the command) a config.

    Raises RunError: there is no such run or sweep, or it is damaged.
    """
    from dynamics_cli.runs.run import describe
    from dynamics_cli.sweeps.directory import Sweep
    from dynamics_cli.sweeps.find import open_run, sweep_directory

    if (sweep := sweep_directory(run)) is not None:
        return Sweep(sweep).describe()
    return describe(open_run(run, together=True))


def compare(a: Which, b: Which) -> Comparison:
    """Compare two runs.

    Settings that differ, final numbers, and how far losses and weights are apart. The relative difference is the
    largest distance over the iterations that both runs recorded, divided by the largest absolute value there.

    Raises RunError: there is no such run, or one holds several runs trained together.
    """
    from dynamics_cli.runs.compare import compare_runs
    from dynamics_cli.sweeps.find import open_run

    return compare_runs(open_run(a, whole=True), open_run(b, whole=True))


def verify(*paths: str | Path) -> Table:
    """Check runs, sweeps and figures against their checksums.

    Each damaged file is named, with its damage and the parts that can still be used. The table has a row for each
    path: `path`, whether it is `intact`, and the `findings`.

    Args:
        paths: the directory or the name of a run or a sweep, or the JSON beside a figure, which stands for the pictures
            and tables that it names and for the runs that it was drawn from; by default everything below outputs.

    Raises RunError: there is no such file, nor a run of this name.
    """
    from dynamics_cli.reproduction.document import verify

    return verify(*paths)


# --- pictures


def plot(
    run: Drawn,
    panel: str | Sequence[str] | None = None,
    at: int | Sequence[int] | None = None,
    *,
    measure: str | None = None,
    where: Mapping[str, Any] | None = None,
    log: LogAxes | None = None,
    out: str | Path | None = None,
    formats: Sequence[str] = ("png",),
) -> Any:
    """Draw panels of a run or a sweep, or several runs together.

    Of a run `list_panels` says which panels there are, of a sweep phase diagrams and curves are drawn, and of several
    runs the loss and each measure that all of them have, in one picture.

    Args:
        run: as `load_run` takes it, a sweep, or several runs.
        panel: a panel or a measure (default: all); in Python also a list of them.
        at: an iteration to show (default: several states in one picture); in Python also a list of them.
        measure: of a sweep, the final number to draw (default: the first measure of the config, or final_loss).
        where: of a sweep, only jobs with this setting; in Python `{"optimizer.lr": 0.1}`.
        log: which axes are logarithmic (default: those that this suits).
        out: folder of the pictures (default: plots in the run directory); in Python nothing is written by default.
        formats: format of the files.

    Returns:
        The figure where one panel is named and at most one state; otherwise name -> figure, as their files are called.

    Raises:
        UsageError: there is no such panel, measure or format.
        RunError: the run is damaged, or a file cannot be written.
    """
    panels = [panel] if isinstance(panel, str) else list(panel or ())
    iterations = [] if at is None else [at] if isinstance(at, int) else list(at)
    options: dict[str, Any] = {"measure": measure, "where": where, "log": log}
    drawn = {}
    for stem, figure in pictures(open_any(run), panels, iterations, **options):
        drawn[stem] = figure
        if out is not None:
            from dynamics_cli.plotting.style import save

            save(figure, Path(out) / stem, formats)
    one = isinstance(panel, str) and (at is None or isinstance(at, int))
    return next(iter(drawn.values())) if one else drawn


def open_any(run: Drawn) -> Run | Sweep | list[Run]:
    """Open what `plot` draws: a run, a sweep, or several runs; refuse damaged files."""
    from dynamics_cli.sweeps.directory import Sweep
    from dynamics_cli.sweeps.find import open_run, sweep_directory

    if isinstance(run, list | tuple):
        for one in run:
            if (directory := sweep_directory(one)) is not None:
                raise UsageError(f"{directory} is a sweep; runs are drawn together, a sweep is drawn alone")
        runs = [open_run(one) for one in run]
        for one in runs:
            one.check_all()
        return runs
    directory = sweep_directory(run)
    return open_run(run, whole=True) if directory is None else Sweep(directory)


def pictures(
    opened: Run | Sweep | list[Run], panels: Sequence[str] = (), iterations: Sequence[int] = (), *,
    measure: str | None = None, where: Mapping[str, Any] | None = None,
    log: LogAxes | None = None, messages: Messages | None = None,
) -> Iterator[tuple[str, Figure]]:  # fmt: skip
    """Draw what `open_any` gives, one picture after the other, each with the name of its file; see `plot`.

    `messages` is told of an iteration whose state was not recorded.
    """
    from dynamics_cli.runs.run import Run

    if not isinstance(opened, Run) and iterations:
        raise UsageError("at goes with a run: a sweep has no states to show, several runs are drawn over all of theirs")
    if isinstance(opened, Run | list) and where:
        raise UsageError("where goes with the table of a sweep; a run has none")
    if isinstance(opened, list):
        yield from _overlays(opened, panels, log)
    elif isinstance(opened, Run):
        from dynamics_cli.analysis import check_panel, draw_panel, panels_of, states_of

        # all is checked before the first picture, so that there is none of a damaged run
        for name in panels:
            check_panel(opened, name, log)
        states = states_of(opened, iterations, messages) or [None]
        for name in dict.fromkeys(panels) or [spec.name for spec in panels_of(opened)]:
            for state in states:
                yield (name if state is None else f"{name}-{state}"), draw_panel(opened, name, state, log)
    else:
        from dynamics_cli.sweeps.pictures import SweepTable, draw_named

        yield from draw_named(SweepTable(opened, log, where=where or {}), panels, measure)


def _overlays(runs: Sequence[Run], panels: Sequence[str], log: LogAxes | None) -> Iterator[tuple[str, Figure]]:
    from dynamics_cli.analysis.overlay import overlaid, overlay_chart
    from dynamics_cli.plotting.chart import draw_charts

    known = overlaid(runs)
    for name in panels:
        if name not in known:
            raise UsageError(
                f"no panel {name!r} of all these runs{did_you_mean(name, known)}; they have {', '.join(known)}"
            )
    places = [f"{run.path.absolute()}{getattr(run, 'replica', '')}" for run in runs]
    digits = hashlib.sha256("\n".join(places).encode()).hexdigest()[:10]
    for name in dict.fromkeys(panels) or known:
        yield f"{runs[0].config.name}-{name}-{digits}", draw_charts([overlay_chart(runs, name, log)])


def predictions(run: Which, anyway: Sequence[str] = ()) -> list[Prediction]:
    """Return the predictions of theories for a run, with the assumptions that it violates.

    Each has `name`, `violated`, `curves` (measured beside predicted) and `deviations`; `prediction_charts` of
    `dynamics_cli.analysis` charts it. Theories named in `anyway` predict although their assumptions fail.

    Raises:
        UsageError: no theory applies to this run, or none of a name in `anyway`.
        RunError: the run is damaged, or has not recorded the weights that a theory needs.
    """
    from dynamics_cli.analysis import predictions as of
    from dynamics_cli.sweeps.find import open_run

    return of(open_run(run, whole=True), anyway)


def list_panels(run: Drawn) -> Table:
    """Return name and description of the panels that a run, several runs or a sweep offer."""
    from dynamics_cli.runs.run import Run

    opened = open_any(run)
    if isinstance(opened, list):
        from dynamics_cli.analysis.overlay import overlaid

        shown = {name: f"{name.replace('_', ' ')} of all runs" for name in overlaid(opened)}
    elif isinstance(opened, Run):
        from dynamics_cli.analysis import panels_of

        shown = {panel.name: panel.description for panel in panels_of(opened)}
    else:
        from dynamics_cli.sweeps.pictures import SweepTable, pictures_of

        shown = dict(pictures_of(SweepTable(opened)))
    return Table({"name": name, "description": description} for name, description in shown.items())


def page(*what: Run | Sweep | FigureResult | str | Path, theory: bool = False) -> Page:
    """Write one HTML file that shows everything, offline.

    Of a run its curves, a slider through its states, its config and where it was made; of several runs their curves
    over one another and the settings that differ; of a sweep its phase diagram; of figures and papers that were
    reproduced the pictures and every claim. The file needs no server and asks for nothing.

    Args:
        what: runs as `load_run` takes them; or a sweep, the id or the result of a reproduced figure, the JSON file
            beside it, or the key of a paper; by default all papers.
        theory: add the predictions of theories for a run, which may take long.

    Returns:
        The page; `save(path)` writes it, and a notebook shows it.

    Raises:
        UsageError: there is nothing of this name, or nothing to show of it.
        RunError: something is damaged, or not there.
    """
    from dynamics_cli.pages import page

    return page(*what, theory=theory)


def animate(run: Which, out: str | Path | None = None, *, progress: Counted | None = None) -> Path:
    """Write the animation of a run, a GIF, and return its path.

    Args:
        run: as `load_run` takes it.
        out: the folder; by default `plots` in the run directory.
        progress: called with the number of frames that are drawn, and of all.

    Raises:
        UsageError: nothing of the run can be animated.
        RunError: the run is damaged, or a file cannot be written.
    """
    from dynamics_cli.analysis import animate_run
    from dynamics_cli.runs.store.layout import plots_folder
    from dynamics_cli.sweeps.find import open_run

    loaded = open_run(run, whole=True)
    folder = out or plots_folder(loaded.path) / str(getattr(loaded, "replica", ""))
    return animate_run(loaded, Path(folder) / "animation.gif", progress)


# --- papers


def reproduce(
    figure: str, *, variant: str | None = None, preset: str = "default", overrides: Overrides = (),
    seeds: int = 1, device: str | None = None, out: str | Path | None = None, force: bool = False,
    formats: Sequence[str] = ("pdf", "png"), progress: ProgressDisplay | None = None,
    messages: Messages | None = None,
) -> FigureResult:  # fmt: skip
    """Reproduce figures of papers and check their claims.

    Trains or reuses the runs that a figure needs, checks what the paper claims, and writes picture and JSON.

    Args:
        figure: its id, such as `boursier2022-fig2`.
        variant: the same figure of other runs, such as `flow`; its files are named `<figure>-<variant>`.
        preset: how much is computed; `full` where the figure has it.
        overrides: as `load_config` takes them; they change all configs of the figure.
        seeds: number of seeds for the claims; each config's seed and that seed plus 1, 2, ...; the first is drawn.
            What several give is written to `<figure>.seeds.json`.
        device: where to compute (default: as the configs say).
        out: folder of the files (default: outputs/figures).
        force: train again, even when the runs are there.
        formats: format of the pictures.
        progress: shows the progress of training runs.
        messages: called with messages for the user.

    Returns:
        The result; `rows` has a row for each claim, `files` the paths of the files written.

    Raises:
        UsageError: there is no such figure, variant, preset or format.
        ConfigError: the overrides do not fit.
        DataMissingError: data that the figure needs are not there.
        RunError: a run cannot go on, or a file cannot be written.
    """
    from dynamics_cli.reproduction.reproduce import reproduce

    return reproduce(
        figure, variant=variant, preset=preset, overrides=overrides, seeds=seeds, device=device, out=out, force=force,
        formats=formats, progress=progress, messages=messages,
    )  # fmt: skip


def audit(
    figure: str, *, nulls: Sequence[str] = (), preset: str = "default", overrides: Overrides = (),
    out: str | Path | None = None,
) -> Audit:  # fmt: skip
    """Check which claims of figures hold under nulls.

    Makes the runs of figures again under nulls: steps of 10^-12 of their size (untrained), a hundredth of the training
    (early), permuted labels (shuffled), initial weights times and divided by 100 (larger, smaller; a larger flow of L
    layers ends 100^(2L-2) times earlier, as it is that much faster), linear activations (linear), weight decay without
    the gradient (decay). A claim that holds untrained says nothing about training. A dash stands where a null does not
    apply, or where the claim is not reproduced anyway.

    Args:
        figure: its id, such as `boursier2022-fig2`.
        nulls: untrained, early, shuffled, larger, smaller, linear, decay, or a null of the figure (default: all).
        preset: as for `reproduce`.
        overrides: as for `reproduce`; the nulls change them further.
        out: folder of the JSON files (default: outputs/figures).

    Raises as `reproduce`; UsageError too where there is no such null.
    """
    from dynamics_cli.reproduction.audit import audit

    return audit(figure, nulls=nulls, preset=preset, overrides=overrides, out=out)


def list_papers() -> Table:
    """List the papers whose figures can be reproduced.

    The columns are key, title, authors, venue, and the ids of the figures.
    """
    from dynamics_cli.reproduction.catalogue import list_papers

    return list_papers()


def list_figures(paper: str | None = None) -> Table:
    """List the figures that can be reproduced.

    Times are on two CPU cores, training included. A variant is the same figure of other runs, such as `flow`,
    gradient flow itself: `dyn reproduce FIGURE --variant NAME`.

    Args:
        paper: only figures of this paper.

    Raises UsageError: there is no such paper.
    """
    from dynamics_cli.reproduction.catalogue import list_figures

    return list_figures(paper)


# --- networks of one's own

USUAL_MEASURES = ("train_loss", "gradient_norm", "sharpness")
"""Measured where none are asked for."""


def measure(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    loss: Any = "cross_entropy",
    measures: Sequence[Any] = USUAL_MEASURES,
    checkpoints: Any = None,
    start: Any = None,
    step: int | None = None,
    parameters: str | Sequence[str] | None = None,
    x_test: Any = None,
    y_test: Any = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: Literal["float32", "float64"] | None = None,
    progress: Counted | None = None,
) -> Measured:
    """Measure a network of torch, as runs are measured.

    At its weights, or at each of several checkpoints. A copy of the model computes, in its eval mode, in blocks of
    samples, outside of `torch.autocast`, `torch.no_grad` and `torch.inference_mode`; the model itself stays as it is.
    No derivative is taken of weights without `requires_grad`; a warning names them.

    Args:
        model: a module with one tensor of outputs, samples along the first axis.
        x: inputs (n, ...): images, tokens, rows; a tuple of them for several arguments, a dictionary for arguments by
            name; or a `DataLoader` of pairs of inputs and labels, without `y`, whose data set is read sample by sample
            as often as inputs are needed: a block of them is in memory, and all labels.
        y: labels (n, ...): numbers of the shape of the outputs, ±1, or classes.
        loss: a kind of loss, its keys as a mapping; or a function of outputs and labels that gives a number for each
            sample, or their mean or sum, such as `torch.nn.functional.cross_entropy`; or a function `(model, batch)`,
            with these names, that gives the mean loss of a batch, which is `x` or what the `DataLoader` gives.
        measures: kinds, such as `"sharpness"` or `{"kind": "sharpness", "blocks": "layer"}`, or functions of a state.
            All measure every checkpoint, whatever their `at`.
        checkpoints: a state dict, a file that `torch.load(weights_only=True)` reads, or a list of them, in the order
            of training; with their iterations as `{100: state_dict}` or `[(100, state_dict)]`.
        start: the initial weights, as a checkpoint or a module, for distances and all that compares with them.
        step: the iteration of a single checkpoint, or of the model's own weights.
        parameters: patterns of names, such as `"layer4.*"`: of other weights no derivative is taken.
        x_test: held-out inputs, for `test_loss` and `test_accuracy`.
        y_test: held-out labels.
        seed: of random vectors, as in a run.
        device: where the copy computes, such as `cuda`; samplers and Lanczos vectors stay on the CPU, in `float64`.
        dtype: precision of the network, by default `float64` on the CPU and `float32` elsewhere, whatever the weights
            have. In `float32` eigenvectors are found to a residual of 1e-5.
        progress: called with how many numbers are measured, of how many.

    Returns:
        A row for each checkpoint: the file as `checkpoint`, `iteration` (as given, the last number in the name of the
        file, or the place in the list), and the measures, named as columns of runs: up to 16 numbers of a measure are
        columns `name.1`, `name.2`, ..., more are an array in the column `name`. `to_xarray()` has all as arrays along
        `iteration`.

    Raises:
        InputError: the model, data, loss, checkpoints and measures do not fit together; the message says why.
        ConfigError: there is no such loss or measure, or it has no such key.
    """
    from dynamics_cli.instruments import measure

    return measure(
        model, x, y, loss=loss, measures=measures, checkpoints=checkpoints, start=start, step=step,
        parameters=parameters, x_test=x_test, y_test=y_test, seed=seed, device=device, dtype=dtype,
        progress=progress,
    )  # fmt: skip


# --- data files


def fetch_data(name: str, *, bar: bool = False) -> Path:
    """Download a data set (mnist, cifar10), and say where it is.

    A file is used only if its SHA-256 matches the original's; a file that is here is not downloaded again.

    Args:
        name: of the data set.
        bar: show the progress on stderr.

    Raises:
        UsageError: there is none of this name that can be downloaded.
        DataMissingError: it could not be downloaded; the message says why, and another way.
    """
    return _published(name).fetch(bar=bar)


def add_data(name: str, path: str | Path, *, progress: Counted | None = None) -> Path:
    """Check files of a data set, use them from now on, and say where.

    The data sets are mnist (a directory with the four IDX files, gzipped or not), cifar10 (cifar-10-binary.tar.gz or
    its directory), which are copied, and dogs-vs-cats (Kaggle's train.zip or the folder that it unpacks to), whose
    place is remembered.

    Args:
        name: of the data set.
        path: of the files.
        progress: called with the number of images that were read, and of all.

    Raises:
        UsageError: no data set of this name can be added.
        InputError: the files do not belong to the data set, or are damaged.
    """
    from dynamics_cli.datasets.files.dogs_vs_cats import NAME, add_dogs_vs_cats

    if name == NAME:
        return add_dogs_vs_cats(Path(path), progress)
    return _published(name, NAME).add(Path(path))


def _published(name: str, *others: str) -> Published:
    from dynamics_cli.datasets.files.cifar10 import CIFAR10
    from dynamics_cli.datasets.files.mnist import MNIST

    known = {one.name: one for one in (MNIST, CIFAR10)}
    if name not in known:
        raise UsageError(f"no such data set {name!r}; choose from {', '.join([*known, *others])}")
    return known[name]
