"""Whether the claims of a figure are still true when its networks are trained for longer.

A claim about the end of training can be true of the moment at which the paper stopped, and of no
later one. The runs of the figure are trained again, a number of times as long; evidence and claims
stay the figure's own.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dynamics_cli.config import RunConfig
from dynamics_cli.config.reader import Overrides, override_texts
from dynamics_cli.errors import UsageError
from dynamics_cli.reproduction.audit import changed_runs, claims_under
from dynamics_cli.reproduction.audits import Longer
from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.document import LONGER, figures_folder
from dynamics_cli.reproduction.obtain import RunSource, by_role
from dynamics_cli.reproduction.reproduce import chosen_figure
from dynamics_cli.runs.store import manifest
from dynamics_cli.runs.store.sealed import seal


def longer(
    figure: str,
    factor: float = 4.0,
    *,
    preset: str = "default",
    overrides: Overrides = (),
    out: str | Path | None = None,
    source: RunSource | None = None,
) -> Longer:
    """Check which claims of figures change when networks are trained for longer.

    Multiplies the iterations, the epochs, or the time of gradient flow. States are recorded on
    along the schedule of the config, listed iterations stay. A schedule of steps over the whole
    run, such as cosine, is stretched; a run that stops below a loss stops there as before.

    Args:
        figure: its id, such as `boursier2022-fig2`.
        factor: how many times as long, such as 4.
        preset: as for `reproduce`.
        overrides: as for `reproduce`.
        out: folder of the JSON files (default: outputs/figures).
        source: gives the runs, in place of a new one.

    Raises as `reproduce`; UsageError too where the factor is not above 1, or the JSON file is
    somebody else's.
    """
    if not (math.isfinite(factor) and factor > 1):
        raise UsageError(f"longer must be a number above 1, not {factor:g}")
    asked = chosen_figure(figure, preset)
    source = source or RunSource()
    changes = override_texts(overrides)
    file = figures_folder(out).absolute() / f"{asked.id}{LONGER}.json"
    manifest.refuse_foreign(file.parent, [file.name])

    wanted = {
        role: replace(run, overrides=(*run.overrides, *changes))
        for role, run in asked.wanted(preset).items()
    }
    planned = changed_runs(partial(_lengthened, factor), wanted) if wanted else "no run is trained"
    source.train([wanted, *([] if isinstance(planned, str) else [planned])])
    runs = source.obtain(wanted)
    of_figure = asked.claims(asked.evidence(by_role(runs)))
    claims = [claim for claim in of_figure if claim.kind == "claim"]

    reason = ""
    later: list[Claim] = []
    if isinstance(planned, str):
        reason = planned
    else:
        answer = claims_under(asked, source, planned)
        if isinstance(answer, str):
            reason = answer
        else:
            later = answer
    ids = {claim.id for claim in claims}
    compared = Longer(
        figure=asked.id,
        longer=factor,
        claims=claims,
        later=[claim for claim in later if claim.id in ids],
        reason=reason,
        hashes={run.role: run.run.hash for run in runs},
    )
    manifest.write_listed(file.parent, {file.name: seal(compared.as_dict())})
    return compared


def _lengthened(factor: float, config: RunConfig) -> list[str]:
    """Return the changes that train a config `factor` times as long."""
    optimizer: Any = config.optimizer
    if optimizer.is_flow:
        return [
            f"optimizer.until={optimizer.until * factor!r}",
            f"optimizer.points={_points(optimizer, factor)}",
        ]
    changes = []
    for key in ("iterations", "epochs"):
        length = getattr(optimizer, key, None)
        if length is not None:
            changes.append(f"optimizer.{key}={round(length * factor)}")
    return changes


def _points(optimizer: Any, factor: float) -> int:
    """Return the number of states that keeps their spacing along a flow `factor` times as long."""
    points: int = optimizer.points
    if optimizer.spacing == "uniform" or points == 1:
        return round(points * factor)
    rate = (points - 1) / math.log(optimizer.until / optimizer.first)
    return points + round(rate * math.log(factor))
