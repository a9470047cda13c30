"""`dyn plot` of the directory of a sweep."""

from __future__ import annotations

from pathlib import Path


def plot_sweep(
    directory: Path,
    panels: tuple[str, ...],
    measure: str,
    out: Path | None,
    formats: tuple[str, ...],
    *,
    list_panels: bool,
    as_json: bool,
) -> None:
    """Draw the pictures of a sweep and print their files, or say which there are."""
    from dynamics_cli.cli.output import emit, emit_json, table
    from dynamics_cli.plotting.style import save
    from dynamics_cli.runs.store.layout import PLOTS
    from dynamics_cli.sweeps.pictures import SweepTable, draw_sweep, panels_of_sweep

    results = SweepTable(directory)
    offered = panels_of_sweep(results)
    if list_panels:
        if as_json:
            emit_json([{"name": name, "description": text} for name, text in offered.items()])
        else:
            emit(table(["panel", "what it shows"], [[name, text] for name, text in offered.items()]))
        return
    files = []
    for name in panels or tuple(offered):
        stem = name if measure == "final_loss" else f"{name}-{measure}"
        files += save(draw_sweep(results, name, measure), (out or directory / PLOTS) / stem, formats)
    if as_json:
        emit_json({"run": directory, "files": files})
        return
    for file in files:
        emit(str(file))
