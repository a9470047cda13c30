"""Figure 3: a clustered network whose decision boundary is linear while its output is not, and Theorem 5.1 itself.

Without training: Theorem 5.1 is checked on 1000 random clustered networks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.measures.linear_pieces import LevelSets, bend, boundary_directions, level_sets, two_layer_pieces
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.panels.inputs import draw_levels

from .panels import draw_neurons
from .theory.clustering import outside_linear_regime, sharp_constant, sharpest, tightness, violations

ALPHA = 0.2
H = np.array([[1.0, 0.6], [-0.4, 0.9]])
"""The directions w and u of the drawn network, as in Figure 3: not opposite to each other."""
A = np.array([1.0, -1.0])
WINDOW = (-2.0, 2.0, -2.0, 2.0)
LEVELS = np.arange(-2.0, 2.01, 0.5)
NETWORKS, POINTS = 1000, 2000
"""Random networks, and random points for each; about two thirds of them lie in the linear regime."""


@dataclass(frozen=True)
class Evidence:
    """The drawn network, and random ones."""

    sets: LevelSets
    nonlinearity: float
    """Share of the output's variance on the window that no linear function explains."""
    clustered: int
    """Signs that differ from the linear classifier's on random perfectly clustered networks."""
    inside: int
    """Random points that lie in the linear regime of their clustered network."""
    violations: int
    """Those of them with another sign than the linear classifier's."""
    tightness: float
    """Largest |<w_bar - u_bar, x>| / (r ||x||) at which the signs differ."""
    sharp: float
    """The same over `(1 - alpha) / (1 + alpha)`."""
    attained: float
    """The same for the network that attains it."""


def evidence(runs: kit.Runs) -> Evidence:
    """Cut the plane at the network's kinks; test Corollary 6.1 and Theorem 5.1 on random networks and points."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (20_000, 2))
    h = outputs(x, H, A, ALPHA)
    fitted = x @ np.linalg.lstsq(x, h, rcond=None)[0]
    counts = random_networks(rng)
    worst = [(alpha, *sharpest(alpha)) for alpha in (0.05, 0.2, 0.5, 0.9)]
    return Evidence(
        sets=level_sets(two_layer_pieces(H, A), ALPHA, WINDOW, LEVELS),
        nonlinearity=float(np.var(h - fitted) / np.var(h)),
        clustered=int(counts[:, 0].sum()),
        inside=int(counts[:, 1].sum()),
        violations=int(counts[:, 2].sum()),
        tightness=float(counts[:, 3].max()),
        sharp=float(counts[:, 4].max()),
        attained=min(tightness(x, W, U, alpha) / sharp_constant(alpha) for alpha, W, U, x in worst),
    )


def random_networks(rng: np.random.Generator) -> kit.Floats:
    """Return (NETWORKS, 5): violations if perfectly clustered; points inside, violations, tightness, its share."""
    rows = []
    for _ in range(NETWORKS):
        d, k = int(rng.integers(2, 20)), int(rng.integers(1, 12))
        spread, alpha = rng.uniform(0, 0.6), rng.uniform(0.01, 0.99)
        w, u = rng.standard_normal((2, 1, d))
        near_w, near_u = (centre + spread * rng.standard_normal((k, d)) / np.sqrt(d) for centre in (w, u))
        x = rng.standard_normal((POINTS, d))
        perfect = violations(x, np.repeat(w, k, axis=0), np.repeat(u, k, axis=0), alpha)
        inside = np.count_nonzero(~outside_linear_regime(x, near_w, near_u))
        tight = tightness(x, near_w, near_u, alpha)
        rows.append((perfect, inside, violations(x, near_w, near_u, alpha), tight, tight / sharp_constant(alpha)))
    return np.array(rows, dtype=np.float64)


def claims(e: Evidence) -> list[kit.Claim]:
    """Check Figure 3, Corollary 6.1 and Theorem 5.1."""
    return [
        kit.theory("boundary", "The decision boundary is a straight line (bend in degrees)",
                  "Figure 3, Corollary 6.1", kit.near(0, 1e-9), bend(boundary_directions(H, A, ALPHA))),
        kit.theory("output",
                  "The output is not a linear function (share of its variance that no linear function explains)",
                  "Section 5.1, Figure 3", kit.more_than(0), e.nonlinearity),
        kit.theory("corollary-6.1",
                  f"Perfectly clustered networks decide linearly (other signs among {NETWORKS * POINTS} random points)",
                  "Corollary 6.1", kit.exactly(0), e.clustered),
        kit.theory("theorem-5.1", "In the linear regime the sign is that of <w_bar - u_bar, x> "
                  f"(violations at {e.inside} points in it)", "Theorem 5.1", kit.exactly(0), e.violations),
        kit.theory("sharp", "(1 - alpha) / (1 + alpha) may replace the constant 2 (largest "
                   "|<w_bar - u_bar, x>| / (r ||x||) at which the signs of a random network differ, over it)",
                   "derived, see sharp_constant", kit.at_most(1), e.sharp),
        kit.theory("attained",
                   "and nothing smaller: two neurons u on either side of 0 attain it (the same, least of four slopes)",
                   "derived, see sharpest", kit.near(1, 1e-6), e.attained),
        kit.finding("tightness",
                    "Largest |<w_bar - u_bar, x>| / (r ||x||) at which the signs differ: the constant 2 is not tight",
                    "Theorem 5.1", e.tightness),
    ]  # fmt: skip


def draw(e: Evidence) -> kit.Drawing:
    """Draw level sets and the two directions."""
    figure, axes = kit.new_figure(2, 1, aspect=0.9)
    sets = e.sets
    draw_levels(axes[0], sets.polygons, sets.bands, sets.segments, sets.levels, WINDOW)
    kit.panel_label(axes[0], 0, "level sets of $N(x)$, every 0.5")
    draw_neurons(axes[1], H, A, "weight")
    for vector, name in zip(H, (r"$\bar w$", r"$\bar u$"), strict=True):
        axes[1].annotate(name, vector, xytext=(4, 3), textcoords="offset points")
    kit.panel_label(axes[1], 1, "the two directions")
    return figure


FIGURE = kit.Figure(
    id="sarussi2021-fig3",
    caption=(
        "Level sets of a perfectly clustered network (a) with its two directions (b). The thick line is the decision "
        "boundary: it is straight, while the level sets beside it bend where a group of neurons changes its sign."
    ),
    origin={"directions": "assumed", "slope": "assumed", "random networks": "assumed"},
    evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip
