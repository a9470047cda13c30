"""Beyond the paper: the norm of the final network against the scale of initialisation (Proposition 1, Theorem 1).

With a few neurons beside it, for which Assumption 3 fails and the norm does not become minimal (Section 3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.plotting.layout import note

from .orthogonal import assumption_claim, read_setting, remarks
from .states import NAN, LossCurve, initial_scale, loss_curve, state_at
from .theory.minimum_norm import orthonormal_value

CONFIG = "boursier2022/orthonormal.yaml"
SCALES = ("10.0", "1.0", "1.0e-2", "1.0e-4", "1.0e-6", "1.0e-8", "1.0e-12", "1.0e-16")
MORE_SCALES = ("30.0", "3.0", "0.1", "1.0e-3", "1.0e-10", "1.0e-14", "1.0e-18")
"""Added by `--preset full`."""
FEW = ("architecture.width=12",)
"""So few neurons that Assumption 3 fails for most draws, seed 0 among them, but every label has a neuron."""
FEW_LEAST = 1e-12
"""The smallest scale of the few: rounding, at 1e-16 of grown neurons, revives neurons that the flow keeps inactive."""
FITTED = 1e-10
"""The loss that counts as zero."""
VISIBLE = 0.01
"""Directions with this share of all squared norms are kinks of the function."""


def evidence(runs: kit.Runs) -> kit.Evidence:
    """Measure the final network of both widths at every scale."""
    few = {role: run for role, run in runs.items() if role.startswith("few")}
    return kit.Evidence(
        wide=_series([run for role, run in runs.items() if role not in few]), few=_series(list(few.values()))
    )


def _series(runs: Sequence[kit.Run]) -> kit.Evidence:
    """Measure final networks of one width, from the largest of the `scales` (k,) to the smallest.

    `norms` (k,) are final `||theta||^2`, `losses` (k,) final losses, `least` is `2 n (||D_+|| + ||D_-||)`, NaN where
    inputs are not orthonormal, and `excess` (k,) `||theta||^2 / least - 1`. Of the smallest scale: `setting`, `curve`,
    the `last` network, its `groups` of directions, of neurons with 1 % of the largest norm or more, and their `shares`
    of the sum of all squared norms, descending.
    """
    ordered = sorted(runs, key=initial_scale, reverse=True)
    states = [state_at(run, run.iterations) for run in ordered]
    setting, last = read_setting(ordered[-1]), states[-1]
    norms = np.array([float(kit.parameter_norm_squared(state.W, state.a)) for state in states])
    least = orthonormal_value(setting.x, setting.y) if setting.assumptions[0].holds else NAN
    groups = kit.cluster_directions(last.W, signs=last.a)
    return kit.Evidence(
        scales=np.array([initial_scale(run) for run in ordered]), norms=norms, least=least, excess=norms / least - 1,
        losses=np.array([run.final_loss for run in ordered]), setting=setting, curve=loss_curve(ordered[-1]), last=last,
        groups=groups, shares=groups.masses / float(np.sum(last.norms**2)),
    )  # fmt: skip


def saddles(curve: LossCurve, half: int = 100) -> int:
    """Return how many saddles a loss passes: that at 0, if it is flat at first, and every slow stretch after it.

    Slow is where the fall of the logarithm over `half` records before and after is less than just before and just
    after; 0 is left once the loss is 5 % below the first, and below a billionth of it training has ended.
    """
    logs = np.log(np.maximum(curve.losses, np.finfo(float).tiny))
    fall = logs[: -2 * half] - logs[2 * half :]
    slow = np.flatnonzero((fall[1:-1] < fall[:-2]) & (fall[1:-1] <= fall[2:])) + 1 + half
    later = (curve.losses[slow] < 0.95 * curve.start) & (curve.losses[slow] > 1e-9 * curve.start)
    return int(fall.size > 0 and fall[0] < VISIBLE) + int(later.sum())


def claims(evidence: kit.Evidence) -> list[kit.Claim]:
    """Compare with Theorem 1, Proposition 1 and Section 3.2."""
    e, few = evidence.wide, evidence.few
    falls, last = np.diff(e.norms), e.last
    fitted, few_fitted = (series.losses.max() <= FITTED for series in (e, few))
    plus, minus = ((last.W * last.norms[:, None])[last.signs == s].sum(axis=0) for s in (1, -1))
    cosine = min(float(kit.cosines(plus, e.setting.D_plus)), float(kit.cosines(minus, -e.setting.D_minus)))
    # a draw that happens to meet Assumption 3 does not show how training goes without it
    violated = not few.setting.assumptions[2].holds
    kinks = int(np.sum(few.shares >= VISIBLE))
    say = f"With {len(few.last.a)} neurons, for which Assumption 3 fails,"
    return [
        assumption_claim(e.setting),
        kit.claim("interpolates", "Every run reaches zero loss (largest final loss)",
                  "Theorem 1", kit.at_most(FITTED), e.losses.max()),
        kit.claim("limit", "For the smallest scale ||theta||^2 is 2n (||D+|| + ||D-||) (ratio)",
                  "Theorem 1, Proposition 1", kit.near(1.0, 1e-3), e.norms[-1] / e.least),
        kit.claim("monotone", "The norm falls to its limit as lambda goes to 0 (share of smaller scales that lower it)",
                  "Theorem 1, Section 3.2",
                  kit.exactly(1), kit.given(fitted and falls.size > 0, np.sum(falls < 0) / max(falls.size, 1))),
        kit.claim("two-neurons", "For the smallest scale the network is one of two neurons "
                  "(share of the squared norms in two directions)", "Section 4.2, Proposition 1",
                  kit.near(1.0, 1e-3), e.shares[:2].sum()),
        kit.claim("collinear", "which are collinear with D+ and -D- (smaller cosine)",
                  "Section 4.2, Proposition 1", kit.more_than(0.99), cosine),
        kit.finding("groups",
                    "Groups of directions at the smallest scale, of neurons with 1 % of the largest norm or more",
                    "Section 4.2", e.groups.count),
        kit.claim("few-loss", f"{say} the loss still converges to 0 (largest final loss)",
                  "Section 3.2", kit.at_most(FITTED), kit.given(violated, few.losses.max())),
        kit.claim("few-norm", "but the norm is not minimal (ratio to the least norm at the smallest scale)",
                  "Section 3.2", kit.more_than(1 + 1e-3),
                  kit.given(violated and few_fitted, few.norms[-1] / few.least)),
        kit.claim("few-kinks", "and the function has more than two kinks (directions with 1 % of the squared norms)",
                  "Section 3.2", kit.more_than(2), kit.given(violated and few_fitted, kinks)),
        kit.claim("few-saddles", "with one saddle per kink (saddles that the loss passes, less directions)",
                  "Section 3.2", kit.exactly(0), kit.given(violated and few_fitted, saddles(few.curve) - kinks)),
    ]  # fmt: skip


def draw(e: kit.Evidence) -> kit.Drawing:
    """Draw the final norm, and its excess over the least norm, against the scale."""
    figure, axes = kit.new_figure(2, 1, aspect=0.72, extra_height=0.2)
    handles = []
    for series, marker, color in ((e.wide, kit.MARKER, kit.PALETTE.measured), (e.few, "s", kit.SERIES[1])):
        width, check = len(series.last.a), "holds" if series.setting.assumptions[2].holds else "fails"
        look: dict[str, Any] = {"marker": marker, "ms": 4, "color": color}
        label = rf"final $\Vert\theta\Vert^2$, $m = {width}$ (Assumption 3 {check})"
        handles += axes[0].plot(series.scales, series.norms, label=label, **look)
        axes[1].plot(series.scales, np.where(series.excess > 0, series.excess, np.nan), **look)
    look = {"color": kit.PALETTE.theory, "ls": (0, (4, 2)), "lw": 1.1}
    handles.append(axes[0].axhline(e.wide.least, label=r"$2n(\Vert D_+\Vert+\Vert D_-\Vert)$", **look))
    for one, ylabel in zip(axes, (r"$\Vert\theta\Vert^2$", "relative excess"), strict=True):
        one.set(xscale="log", yscale="log", xlabel=r"initialisation scale $\lambda$", ylabel=ylabel)
    axes[1].set_xlim(axes[0].get_xlim())
    if dropped := sum(int(np.sum(~(series.excess > 0))) for series in (e.wide, e.few)):
        note(axes[1], f"{dropped} not above 0, not drawn")
    kit.panel_label(axes[0], 0, "Norm of the final network")
    kit.panel_label(axes[1], 1, "Excess over the least norm")
    kit.figure_legend(figure, handles, columns=2)
    return figure


def _wanted(scales: tuple[str, ...]) -> dict[str, str | kit.Wanted]:
    wide = {f"scale {one}": kit.Wanted(CONFIG, (f"initialization.scale={one}",)) for one in scales}
    few = {
        f"few, scale {one}": kit.Wanted(CONFIG, (*FEW, f"initialization.scale={one}"))
        for one in scales
        if float(one) >= FEW_LEAST
    }
    return {**wide, **few}


FIGURE = kit.Figure(
    id="boursier2022-extra-norm",
    caption=(
        "Not in the paper: six orthonormal points in ten dimensions, trained to zero loss from several scales of "
        "initialisation. With 200 neurons the norm of the final network falls to that of Proposition 1 as lambda goes "
        "to 0; with 12, for which Assumption 3 fails, it does not."
    ),
    configs=_wanted(SCALES), presets={"full": _wanted(MORE_SCALES)}, origin={"all settings": "chosen"},
    remarks=lambda e: remarks(e.wide),
)  # fmt: skip
