"""Figures 3 and 5: networks of two directions, Theorem 5.1 on random networks; nothing is
trained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.scene import Scene, draw_scene

from .groups import boundary_directions, draw_neurons, regions_scene
from .theory.clustering import (
    outside_linear_regime,
    sharp_constant,
    sharpest,
    steps_violated,
    tightness,
    violations,
)

ALPHA = 0.2
H_3 = np.array([[1.0, 0.6], [-0.4, 0.9]])
"""The directions w and u of the drawn network, as in Figure 3: not opposite to each other."""
A = np.array([1.0, -1.0])
"""Output weights of w and u."""
WINDOW = (-2.0, 2.0, -2.0, 2.0)
LEVELS = tuple(np.arange(-2.0, 2.01, 0.5))
NETWORKS = 1000
POINTS = 2000
"""Random networks, and random points for each; about two thirds of them lie in the linear
regime.
"""


def bend(H: kit.Floats, a: kit.Floats, alpha: float) -> float:
    """Return by how many degrees the decision boundary misses a straight line; NaN unless it is
    two rays.
    """
    angles = boundary_directions(H, a, alpha)
    return float(abs(180.0 - (angles[1] - angles[0]))) if len(angles) == 2 else float("nan")


@dataclass(frozen=True)
class Clustered:
    """The drawn network of two directions, and random networks."""

    sets: Scene
    """Level sets of the drawn network."""
    nonlinearity: float
    """Share of the variance of its output that no linear function explains."""
    clustered: int
    """Signs that Corollary 6.1 does not allow."""
    inside: int
    """Random points in the linear regime."""
    violations: int
    """Signs that Theorem 5.1 does not allow at them."""
    steps: int
    """Points at which a step of its proof fails, Corollary C.1 or Lemma C.1."""
    sharp: float
    """The largest share of `sharp_constant` at which signs differ."""
    attained: float
    """The same for the worst networks, the least of four slopes."""


def evidence_fig3(runs: kit.Runs) -> Clustered:
    """Map the output of the drawn network; test Corollary 6.1 and Theorem 5.1 on random networks
    and points.
    """
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (20_000, 2))
    h = outputs(x, H_3, A, ALPHA)
    fitted = x @ np.linalg.lstsq(x, h, rcond=None)[0]
    counts = random_networks(rng)
    worst = [(alpha, *sharpest(alpha)) for alpha in (0.05, 0.2, 0.5, 0.9)]
    return Clustered(
        sets=regions_scene(H_3, A, ALPHA, WINDOW, LEVELS, shade=(0.1, 0.6)),
        nonlinearity=float(np.var(h - fitted) / np.var(h)),
        clustered=int(counts[:, 0].sum()),
        inside=int(counts[:, 1].sum()),
        violations=int(counts[:, 2].sum()),
        steps=int(counts[:, 4].sum()),
        sharp=float(counts[:, 3].max()),
        attained=min(tightness(x, W, U, alpha) / sharp_constant(alpha) for alpha, W, U, x in worst),
    )


def random_networks(rng: np.random.Generator) -> kit.Floats:
    """Return (NETWORKS, 5): violations if perfectly clustered; points inside, violations, share
    of the constant, violated steps.
    """
    rows = []
    for _ in range(NETWORKS):
        d = int(rng.integers(2, 20))
        k = int(rng.integers(1, 12))
        spread = rng.uniform(0, 0.6)
        alpha = rng.uniform(0.01, 0.99)
        w, u = rng.standard_normal((2, 1, d))
        near_w, near_u = (
            centre + spread * rng.standard_normal((k, d)) / np.sqrt(d) for centre in (w, u)
        )
        x = rng.standard_normal((POINTS, d))
        perfect = violations(x, np.repeat(w, k, axis=0), np.repeat(u, k, axis=0), alpha)
        inside = np.count_nonzero(~outside_linear_regime(x, near_w, near_u))
        sharp = tightness(x, near_w, near_u, alpha) / sharp_constant(alpha)
        steps = sum(steps_violated(x, near_w, near_u))
        rows.append((perfect, inside, violations(x, near_w, near_u, alpha), sharp, steps))
    return np.array(rows, dtype=np.float64)


def claims_fig3(e: Clustered) -> list[kit.Claim]:
    return [
        kit.theory(
            "boundary",
            "The decision boundary is a straight line (bend in degrees)",
            "Figure 3, Corollary 6.1",
            kit.near(0, 1e-9),
            bend(H_3, A, ALPHA),
        ),
        kit.theory(
            "output",
            "The output is not a linear function (share of its variance that no linear function "
            "explains)",
            "Section 5.1, Figure 3",
            kit.more_than(0),
            e.nonlinearity,
        ),
        kit.theory(
            "corollary-6.1",
            "Perfectly clustered networks decide linearly (other signs among "
            f"{NETWORKS * POINTS} random points)",
            "Corollary 6.1",
            kit.exactly(0),
            e.clustered,
        ),
        kit.theory(
            "theorem-5.1",
            r"In the linear regime the sign is the sign of $\langle \bar w - \bar u, x\rangle$ "
            f"(violations at {e.inside} points in it)",
            "Theorem 5.1",
            kit.exactly(0),
            e.violations,
        ),
        kit.theory(
            "steps",
            r"There $|\langle \bar w, x\rangle|$ or $|\langle \bar u, x\rangle|$ is at least"
            r" $r \|x\|$, where all neurons have the sign of their mean (points where one fails)",
            "Corollary C.1, Lemma C.1",
            kit.exactly(0),
            e.steps,
        ),
        kit.theory(
            "sharp",
            r"$(1 - \alpha)/(1 + \alpha)$ may replace the constant 2 (largest "
            r"$|\langle \bar w - \bar u, x\rangle| / (r \|x\|)$ at which the signs of a random"
            r" network differ, "
            "over it)",
            "derived, see sharp_constant",
            kit.at_most(1),
            e.sharp,
        ),
        kit.theory(
            "attained",
            "No smaller constant will do: two neurons u on either side of 0 attain that one (the "
            "same, least of four slopes)",
            "derived, see sharpest",
            kit.near(1, 1e-6),
            e.attained,
        ),
    ]


def draw_fig3(e: Clustered) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 1, aspect=0.9)
    draw_scene(axes[0], e.sets, 0)
    kit.panel_label(axes[0], 0, "Level sets of $N(x)$, every 0.5")
    draw_neurons(axes[1], H_3, A, "weight")
    for vector, name in zip(H_3, (r"$\bar w$", r"$\bar u$"), strict=True):
        axes[1].annotate(name, vector, xytext=(4, 3), textcoords="offset points")
    kit.panel_label(axes[1], 1, "The two directions")
    return figure


FIGURE_3 = kit.Figure(
    id="sarussi2021-fig3",
    caption=(
        "Level sets of a perfectly clustered network (a) with its two directions (b). The thick"
        " line is the decision boundary: it is straight, while the level sets beside it bend where"
        " a group of neurons changes its sign."
    ),
)


H_5 = np.array([[1.0, 0.5], [-0.3, 1.0]])
"""Neurons w and u."""
FINE = 0.005
"""Levels between which an output is drawn as 0: about a pixel apart."""
DIRECTIONS = 360_000


@dataclass(frozen=True)
class TwoNeurons:
    """The outputs of both networks."""

    leaky: Scene
    relu: Scene
    signs: kit.Floats
    """(`DIRECTIONS`,) of the ReLU network on a circle."""


def evidence_fig5(runs: kit.Runs) -> TwoNeurons:
    """Map the outputs of both networks."""
    angles = (np.arange(DIRECTIONS) + 0.5) * 2 * np.pi / DIRECTIONS
    return TwoNeurons(
        leaky=regions_scene(H_5, A, ALPHA, WINDOW),
        relu=regions_scene(H_5, A, 0.0, WINDOW, (-FINE, FINE)),
        signs=np.sign(outputs(np.stack([np.cos(angles), np.sin(angles)], axis=1), H_5, A, 0.0)),
    )


def best_linear(signs: kit.Floats) -> float:
    """Return the least share of directions that a half-plane decides otherwise than `signs` (n,)
    on a circle.
    """
    n = len(signs)
    turns = np.concatenate([[0.0], np.cumsum(np.concatenate([signs, signs]))])
    inside = (
        turns[n // 2 : n // 2 + n] - turns[:n]
    )  # sum of the signs over a half circle from every direction
    total = float(signs.sum())
    agree = (inside - (total - inside)).max()  # right minus wrong
    return float((np.count_nonzero(signs) - agree) / 2 / n)


def claims_fig5(e: TwoNeurons) -> list[kit.Claim]:
    between = float(
        np.degrees(np.arccos(H_5[0] @ H_5[1] / np.linalg.norm(H_5[0]) / np.linalg.norm(H_5[1])))
    )
    zero = e.signs == 0
    least = min(best_linear(np.where(zero, label, e.signs)) for label in (1.0, -1.0))
    return [
        kit.theory(
            "leaky-linear",
            "Leaky ReLU: the decision boundary is linear (bend in degrees)",
            "Appendix D.1, Figure 5(a); Theorem 5.1",
            kit.near(0, 1e-9),
            bend(H_5, A, ALPHA),
        ),
        kit.theory(
            "relu-zero",
            "ReLU: the output is 0 in a sector (opening angle in degrees; 180 minus the angle of w "
            "and u)",
            "Appendix D.1, Figure 5(b)",
            kit.near(180 - between, 0.01),
            float(360 * np.mean(zero)),
        ),
        kit.theory(
            "relu-not-linear",
            "ReLU: the boundary is not linear, whichever label 0 gets (directions that the "
            "best line gets wrong)",
            "Appendix D.1, Figure 5(b)",
            kit.more_than(0),
            least,
        ),
    ]


def draw_fig5(e: TwoNeurons) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 1, aspect=0.9, extra_height=0.3)
    left, right = (
        draw_scene(axes[k], scene, 0).handles for k, scene in enumerate((e.leaky, e.relu))
    )
    kit.panel_labels(axes, "Leaky ReLU", "ReLU")
    for panel in axes:
        for vector, sign, label in ((H_5[0], 1, "$w$"), (H_5[1], -1, "$u$")):
            color = kit.PALETTE.sign(sign)
            arrow = {"arrowstyle": "-|>", "color": color, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
            panel.annotate("", vector, (0, 0), arrowprops=arrow, zorder=4)
            panel.annotate(label, vector, xytext=(3, 3), textcoords="offset points", color=color)
    white = next(handle for handle in right if handle.get_label() == "$N(x)=0$")
    white.set(edgecolor=kit.PALETTE.muted, linewidth=0.6)
    named = [handle for handle in left if handle.get_label() != white.get_label()]
    kit.figure_legend(figure, [*named, white], columns=4)
    return figure


FIGURE_5 = kit.Figure(
    id="sarussi2021-fig5",
    caption=(
        "Decision regions of a network of two neurons with leaky ReLU (a) and with ReLU (b); in the"
        " white sector the output of the ReLU network is 0, and whatever label that gets, its"
        " boundary is not linear."
    ),
)


FIGURES = kit.by_id(FIGURE_3, FIGURE_5)
