"""The final numbers of a run, as several commands show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamics_cli.runs import Run


def final_numbers(run: Run) -> dict[str, Any]:
    """Return status, iterations, final loss, seconds, device and backend by name; None for what is not known."""
    info = run.info
    return {
        "status": run.status,
        "iterations": run.iterations,
        "final_loss": run.final_loss,
        "seconds": info.get("seconds"),
        "device": info.get("device"),
        "backend": info.get("backend"),
    }


def final_measures(run: Run) -> dict[str, float]:
    """Return the last recorded value of every measure that is one number, e.g. accuracies."""
    recorded = {name: run.measures[name] for name in run.measures}
    return {name: float(values[-1]) for name, values in recorded.items() if values.ndim == 1 and len(values)}
