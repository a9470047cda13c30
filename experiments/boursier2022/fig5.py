"""Figure 5: five points, large initialisation: the lazy regime, beside the interpolator of the tangent kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.ntk import NtkRegression, ntk_regression

from .panels import draw_states
from .states import LOSS_FACTOR, ORIGIN, LineState, LossCurve, line_state, loss_curve

NEARLY = 0.1
""""Approximately" and "not significantly": within 10 %."""
FITTED = 1e-3
"""The loss that counts as zero, as in Figure 4."""


@dataclass(frozen=True)
class Evidence:
    """The first and the last state, and kernel regression from the first."""

    x: kit.Floats
    """(n, 2) inputs with the constant."""
    y: kit.Floats
    first: LineState
    last: LineState
    curve: LossCurve
    small: LossCurve
    """That of Figure 4, from a small initialisation."""
    kernel: NtkRegression

    def interpolator(self, x: kit.Floats) -> kit.Floats:
        """Return the kernel's interpolator at inputs (k,) without the constant."""
        return self.kernel(np.column_stack([x, np.ones_like(x)]))


def evidence(runs: kit.Runs) -> Evidence:
    """Read the states, and solve the kernel regression."""
    run = runs["large"]
    x, y = run.dataset().x, run.dataset().y
    first, last = line_state(run, 0), line_state(run, run.iterations)
    kernel = ntk_regression(x, y, first.W, first.a, loss_factor=LOSS_FACTOR)
    return Evidence(x, y, first, last, loss_curve(run), loss_curve(runs["small"]), kernel)


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare with Appendix A.1."""
    first, last, curve = e.first, e.last, e.curve
    within = (float(e.x[:, 0].min()), float(e.x[:, 0].max()))
    grid = np.linspace(*within, 2001)
    end = last.function(grid)
    error, size, change = (
        float(np.sqrt(np.mean(one**2))) for one in (end - e.interpolator(grid), end, end - first.function(grid))
    )
    fitted, fitted_small = (one.first_below(FITTED) for one in (curve, e.small))
    least_small = fitted_small if np.isfinite(fitted_small) else float(e.small.iterations[-1])  # it took longer
    return [
        kit.claim("lazy", "Neurons do not move significantly (median relative movement of hidden weights)",
                  "Appendix A.1, Figure 5", kit.at_most(NEARLY), np.median(kit.relative_movement(last.W, first.W))),
        kit.claim("kinks",
                  "The final function is not as simple as for small initialisation (kinks between the inputs: tens)",
                  "Appendix A.1, Figure 5(b)", kit.at_least(20), len(kit.distinct_kinks(last.W, within=within))),
        kit.claim("loss", "The loss converges to 0 within 5000 iterations (orders of magnitude fallen)",
                  "Appendix A.1, Figure 5(b)", kit.at_least(4), kit.orders_fallen(curve.losses)),
        kit.claim("no-saddle", "The trajectory does not go through saddle points (plateaus of the loss)",
                  "Appendix A.1", kit.exactly(0), len(kit.find_plateaus(curve.iterations, curve.losses, floor=1e-4))),
        kit.claim("faster", "The loss converges much faster than from a small initialisation "
                  "(first iteration below 1e-3, over that of Figure 4)",
                  "Appendix A.1", kit.at_most(0.1), fitted / least_small),
        kit.claim("kernel", "The final function is approximately the interpolator of the tangent kernel at "
                  "initialisation (root mean square distance between the inputs, over the final function's size)",
                  "Appendix A.1", kit.at_most(NEARLY), error / size),
        kit.finding("kernel-change", "The same distance, over that of the final function from the initial one",
                    "Appendix A.1", error / change),
        kit.finding("patterns", "Share of (point, neuron) pairs whose activation changed",
                    "Appendix A.1", float(kit.changed_patterns(e.x, last.W, first.W))),
        kit.finding("start", "Loss at initialisation, which the paper does not print", "Figure 5(a)", curve.start),
        kit.finding("speed", "First iteration with a loss below 1e-3", "Appendix A.1", fitted),
        kit.finding("speed-small", "and from a small initialisation", "Appendix A.1", fitted_small),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw the first and the last state, and over the last one the kernel's interpolator."""
    titles = ["Initialisation", "End of training"]
    states = [e.first, e.last]
    return draw_states(states, titles, e.x[:, 0], e.y, overlay=e.interpolator, overlay_label="NTK interpolator")


FIGURE = kit.Figure(
    id="boursier2022-fig5",
    caption=(
        "As Figure 4, with initialisation scale 10: between the first and the last state the neurons hardly move. "
        "Dashed: the interpolator of the tangent kernel at initialisation."
    ),
    configs={"large": "boursier2022/five_points_large.yaml", "small": "boursier2022/five_points.yaml"},
    origin={**ORIGIN, "data": "released"}, evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip
