"""The worth of a figure's claims: made again under nulls, every claim should fail under some.

A claim that holds for networks that were never trained says nothing about training. A null changes
the configs of a figure; evidence and claims stay the figure's own.
"""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli._bundled import CONFIGS
from dynamics_cli.config import ConfigError, RunConfig, load_config
from dynamics_cli.config.reader import Overrides, override_texts
from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.gradients.derivatives import trained_among
from dynamics_cli.kinds import Descent
from dynamics_cli.process import ignored_warnings
from dynamics_cli.reproduction.audits import Audit, NullOutcome, read_audit
from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.document import AUDIT, figures_folder
from dynamics_cli.reproduction.figure import Figure, NullChanges, Wanted
from dynamics_cli.reproduction.obtain import RunSource, evidence_of
from dynamics_cli.reproduction.reproduce import chosen_figure
from dynamics_cli.runs.store import manifest
from dynamics_cli.runs.store.layout import outputs_root
from dynamics_cli.runs.store.sealed import seal
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.session import plan_run
from dynamics_cli.training.signals import Interrupted

STILL = 1e-12
"""Share of a step, or of the time of a flow, after which nothing has been trained."""
EARLY = 100
"""The early part of a run is its length over this."""
SLOW = 100.0
"""A slow network moves by its step over this, along the same axis of time."""
SCALE = 100.0
"""Factor of the initial weights under another scale."""
WRONG = -3.0
"""Factor of the updates of the last weight matrix under a wrong gradient."""
DATA = "data"
"""The null of a figure with data that break the premise of its theorem (`Figure.nulls`)."""
LONGER = "longer"
"""The null of networks that are trained for longer."""
MUST_FAIL = (
    *("untrained", "one_step", "early", "slow", "random_features", "linear", "decay"),
    *("wrong_gradient", DATA),
)
"""Nulls under which a claim fails, or says why it holds."""
Change = Callable[[RunConfig], list[str]]
"""A config -> changes to it, as `--set` takes them."""


def _still(config: RunConfig) -> list[str]:
    return _shorter(config, STILL) or [f"optimizer.lr={config.optimizer.lr * STILL!r}"]  # type: ignore[attr-defined]


def _early(config: RunConfig) -> list[str]:
    if shorter := _shorter(config, 1 / EARLY):
        return shorter
    return _ended(config, max(1, plan_run(config).needs.iterations // EARLY))


def _one_step(config: RunConfig) -> list[str]:
    if not isinstance(config.optimizer, Descent):
        return []
    return _ended(config, 1)


def _ended(config: RunConfig, iterations: int) -> list[str]:
    """Return the changes that end training after some iterations, whatever its epochs are."""
    by_epochs = getattr(config.optimizer, "epochs", None) is not None
    return [*["optimizer.epochs=null"] * by_epochs, f"optimizer.iterations={iterations}"]


def _slow(config: RunConfig) -> list[str]:
    """Return factors of the steps of all weights: `lr`, by which time is counted, stays."""
    if not isinstance(config.optimizer, Descent):
        return []
    problem = build_problem(config)
    given = problem.step_factors()
    factors = {name: given.get(name, 1.0) / SLOW for name in problem.shapes}
    return [f"optimizer.layer_lr={json.dumps(factors)}"]


def _wrong_gradient(config: RunConfig) -> list[str]:
    """Return step factors that move the last trained matrix three times as far and the wrong way.

    It is often the matrix of the outputs.
    """
    if "layer_lr" not in type(config.optimizer).model_fields:
        return []
    problem = build_problem(config)
    trained = trained_among(config.architecture, problem.shapes)
    matrices = [name for name in trained if "bias" not in name]
    if not matrices:
        return []
    given = problem.step_factors()
    factors = {**given, matrices[-1]: given.get(matrices[-1], 1.0) * WRONG}
    return [f"optimizer.layer_lr={json.dumps(factors)}"]


def _random_features(config: RunConfig) -> list[str]:
    """Return the names of trained weights beyond the first layer, if there are any."""
    network = config.architecture
    shapes = build_problem(config).shapes
    input_weight = next(iter(shapes))
    first = {input_weight, input_weight.replace("weight", "bias")}
    trained = trained_among(network, shapes)
    others = [name for name in trained if name not in first]
    if network.players or not others or not first.intersection(trained):
        return []
    return [f"architecture.train={json.dumps(others)}"]


def _shorter(config: RunConfig, share: float) -> list[str]:
    """Return the changes that end a flow after a share of its time; none where updates count."""
    times = {key: getattr(config.optimizer, key, None) for key in ("until", "first")}
    return [f"optimizer.{key}={time * share!r}" for key, time in times.items() if time is not None]


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


def _linear(config: RunConfig) -> list[str]:
    network: Any = config.architecture
    if getattr(network, "activation", None) is None:
        return []
    changes = ["architecture.activation=linear"]
    if getattr(network, "slope", None) is not None:
        changes.append("architecture.slope=null")
    return changes


def _decay(config: RunConfig) -> list[str]:
    """Return the changes after which the gradient is negligible, and weights decay as before.

    Decoupled decay, and decay under plain descent, is by `lr * weight_decay`. An update that is
    divided by the size of `g + weight_decay w` does not change with the size of both.
    """
    optimizer: Any = config.optimizer
    if not (decay := getattr(optimizer, "weight_decay", None)):
        return []
    changes = [f"optimizer.weight_decay={decay / STILL!r}"]
    by_size = hasattr(optimizer, "eps") and not getattr(optimizer, "decoupled", False)
    if not by_size:
        changes.insert(0, f"optimizer.lr={optimizer.lr * STILL!r}")
    return changes


def _depth(config: RunConfig) -> int:
    """Return the number L of layers.

    Rates of a homogeneous network grow as its weights to the power 2 L - 2.
    """
    network = config.architecture
    return getattr(network, "depth", None) or 1 + len(getattr(network, "widths", None) or [0])


NULLS: dict[str, Change] = {
    "untrained": _still,
    "one_step": _one_step,
    "early": _early,
    "slow": _slow,
    "random_features": _random_features,
    "shuffled": lambda config: ["dataset.random_labels=1.0"],
    "larger": lambda config: [
        f"initialization.rescale={SCALE!r}",
        *_shorter(config, SCALE ** (2 - 2 * _depth(config))),
    ],
    "smaller": lambda config: [f"initialization.rescale={1 / SCALE!r}"],
    "linear": _linear,
    "decay": _decay,
    "wrong_gradient": _wrong_gradient,
}
"""The standard nulls: changes of a figure's runs after which its claims should fail."""


def audit(
    figure: str,
    *,
    nulls: Sequence[str] = (),
    longer: float | None = None,
    preset: str = "default",
    overrides: Overrides = (),
    out: str | Path | None = None,
    source: RunSource | None = None,
) -> Audit:
    """Check which claims of figures hold under nulls.

    Makes the runs of figures again under nulls: steps of 10^-12 of their size (untrained), one
    update (one_step), a hundredth of the training (early), updates divided by 100 on the same axis
    of time (slow), a first layer that is not trained (random_features), permuted labels (shuffled),
    initial weights times and divided by 100 (larger, smaller; a larger flow of L layers ends
    100^(2L-2) times earlier, as it is that much faster), linear activations (linear), weight decay
    without the gradient (decay), updates of the last weight matrix times -3 (wrong_gradient); and
    data that break the premise of a theorem, where a figure names them (data). A claim that holds
    untrained says nothing about training, and one that holds under a wrong gradient measures the
    program. A dash stands where a null changes nothing or does not apply, or where the claim is not
    reproduced anyway.

    A claim about the end of training can be true of the moment at which the paper stopped, and of
    no later one: `longer` multiplies the iterations, the epochs, or the time of gradient flow, and
    says which verdicts change. States are recorded on along the schedule of the config, listed
    iterations stay. A schedule of steps over the whole run, such as cosine, is stretched; a run
    that stops below a loss stops there as before.

    What is asked joins the table that an earlier audit of the same runs has left.

    Args:
        figure: its id, such as `boursier2022-fig2`.
        nulls: untrained, one_step, early, slow, random_features, shuffled, larger, smaller, linear,
            decay, wrong_gradient, data, or another null of the figure (default: all, or none
            beside `longer`).
        longer: how many times as long networks are trained, such as 4 (default: not tried).
        preset: as for `reproduce`.
        overrides: as for `reproduce`; the nulls change them further.
        out: folder of the JSON files (default: outputs/figures).
        source: gives the runs, in place of a new one.

    Raises as `reproduce`; UsageError too where there is no such null, `longer` is not above 1, or
    the JSON file is somebody else's.
    """
    asked = chosen_figure(figure, preset)
    changes = _chosen(asked, nulls, longer)
    source = source or RunSource()
    given = override_texts(overrides)
    file = figures_folder(out).absolute() / f"{asked.id}{AUDIT}.json"
    manifest.refuse_foreign(file.parent, [file.name])
    wanted = {
        role: replace(run, overrides=(*run.overrides, *given))
        for role, run in asked.wanted(preset).items()
    }
    planned: dict[str, Mapping[str, Wanted] | str] = dict.fromkeys(changes, "no run is trained")
    if wanted:
        planned = {null: changed_runs(change, wanted) for null, change in changes.items()}
    source.train([wanted, *(runs for runs in planned.values() if not isinstance(runs, str))])
    runs = source.obtain(wanted)
    of_figure = asked.claims(evidence_of(asked, runs))
    claims = [claim for claim in of_figure if claim.kind == "claim"]
    outcomes = []
    for null, changed in planned.items():
        if isinstance(changed, str):
            outcome = NullOutcome(null=null, held={}, reason=changed)
        else:
            outcome = _outcome(asked, null, claims, claims_under(asked, source, changed))
        factor = longer if null == LONGER else None
        outcomes.append(outcome.model_copy(update={"factor": factor}))
    hashes = {run.role: run.run.hash for run in runs}
    audited = Audit(figure=asked.id, claims=claims, nulls=outcomes, hashes=hashes)
    audited = _joined(asked, read_audit(file), audited)
    manifest.write_listed(file.parent, {file.name: seal(audited.model_dump())})
    return audited


def _chosen(figure: Figure, nulls: Sequence[str], longer: float | None) -> dict[str, Change]:
    """Return the changes that are asked for, by the names of their nulls."""
    known = dict(NULLS)
    for name, texts in figure.nulls.items():
        known[name] = partial(_given, texts)
    if wrong := [name for name in nulls if name not in known]:
        raise UsageError(
            f"no null {wrong[0]!r}{did_you_mean(wrong[0], known)}; there are {', '.join(known)}"
        )
    if longer is None:
        return {null: known[null] for null in nulls or known}
    if not (math.isfinite(longer) and longer > 1):
        raise UsageError(f"longer must be a number above 1, not {longer:g}")
    return {**{null: known[null] for null in nulls}, LONGER: partial(_lengthened, longer)}


def _joined(figure: Figure, before: Audit | None, audited: Audit) -> Audit:
    """Return an audit with the nulls of an earlier one of the same runs and claims."""
    if before is None or (before.hashes, before.claims) != (audited.hashes, audited.claims):
        return audited
    names = [outcome.null for outcome in audited.nulls]
    kept = []
    for outcome in before.nulls:
        if outcome.null not in names:
            why = reasons(figure, outcome.null, outcome.held)
            kept.append(outcome.model_copy(update={"why": why}))
    return audited.model_copy(update={"nulls": [*kept, *audited.nulls]})


def _given(changes: NullChanges, config: RunConfig) -> list[str]:
    """Return the changes of a null of the figure: for all configs, or by their names."""
    if isinstance(changes, Mapping):
        return list(changes.get(config.name, ()))
    return list(changes)


def changed_runs(change: Change, wanted: Mapping[str, Wanted]) -> Mapping[str, Wanted] | str:
    """Return the runs of a figure with changed configs, or why the change does not apply to them.

    They are kept apart from the runs that figures are drawn from (`Wanted.null`).
    """
    changed = {}
    same = True
    for role, run in wanted.items():
        path = CONFIGS / run.config
        try:
            before = load_config(path, run.overrides)
            overrides = (*run.overrides, *change(before))
            after = load_config(path, overrides)
            changed[role] = replace(run, overrides=overrides, null=before != after)
        except ConfigError as error:
            return str(error).splitlines()[-1].strip()
        same = same and _same_run(before, after)
    return "no null: it changes no run of this figure" if same else changed


def _same_run(before: RunConfig, after: RunConfig) -> bool:
    """Return whether two configs give the same run, as a permutation of equal labels does."""
    if before == after:
        return True
    if before.model_copy(update={"dataset": after.dataset}) != after:
        return False
    old = build_problem(before).dataset
    new = build_problem(after).dataset
    return np.array_equal(old.x, new.x) and np.array_equal(old.y, new.y)


def _outcome(
    figure: Figure, null: str, claims: Sequence[Claim], answer: list[Claim] | str
) -> NullOutcome:
    """Return which claims hold under a null that applies, given the claims of the changed runs."""
    reproduced = [claim.id for claim in claims if claim.verdict == "reproduced"]
    if isinstance(answer, str):
        held = {} if null == LONGER else dict.fromkeys(reproduced, False)
        return NullOutcome(null=null, held=held, reason=answer)
    if null == LONGER:
        later = {claim.id: claim.verdict for claim in answer}
        # a claim that the evidence no longer has is not reproduced
        held = {one.id: later.get(one.id, "not reproduced") == one.verdict for one in claims}
        return NullOutcome(null=null, held=held, measured={one.id: one.measured for one in answer})
    holding = {claim.id: claim.measured for claim in answer if claim.holds}
    held = {key: key in holding for key in reproduced}
    measured = {key: holding[key] for key, holds in held.items() if holds}
    return NullOutcome(null=null, held=held, why=reasons(figure, null, held), measured=measured)


def claims_under(
    figure: Figure, source: RunSource, runs: Mapping[str, Wanted]
) -> list[Claim] | str:
    """Return the claims of a figure as changed runs give them, or why there are none."""
    try:
        with ignored_warnings():
            return figure.claims(evidence_of(figure, source.obtain(runs)))
    except Interrupted:
        raise
    except Exception as error:
        # evidence may well not exist: a run diverged, a plateau was never reached
        first = f"{type(error).__name__}: {error}".splitlines()[0]
        return first.replace(f"{outputs_root()}/", "")


def reasons(figure: Figure, null: str, held: Mapping[str, bool]) -> dict[str, str]:
    """Return why claims that hold under a null do: id -> sentence of the figure."""
    ids = [key for key, holds in held.items() if holds]
    why = dict[str, str]()
    for patterns, sentence in figure.passes.get(null, {}).items():
        for pattern in patterns.split():
            why |= dict.fromkeys(fnmatch.filter(ids, pattern), sentence)
    return why
