"""Beyond the figures: Theorem 1 and its lemmas on small data that satisfy the assumptions."""

from __future__ import annotations

import numpy as np

from dynamics_cli import kit
from dynamics_cli.optimizers.gradient_flow import GradientFlow

from .theory.canonical_neurons import CanonicalNeurons, canonical_neurons, distance_to_limit, kkt_residual
from .theory.extremal_sectors import G, extremal_directions, predicted_sector, sector_of

SCALES = ("1.0e-1", "1.0e-2", "1.0e-3", "1.0e-4")
DRAWS = (("2", "11"), ("2", "13"), ("2", "18"), ("2", "20"), ("3", "13"), ("3", "31"))
"""Dimension and seed of the Gaussian data; these draws satisfy the assumptions of Theorem 1."""
EARLY = 2.0
"""`log t` from which the neurons are sorted into their groups."""
LATE = 50.0
"""`log t` from which the rate is fitted; everything is asymptotic there."""


def limit_path(run: kit.Run, limit: CanonicalNeurons) -> kit.Evidence:
    """Measure one run in rescaled time: an update of step lr divided by the loss takes the time lr / loss.

    `distances` (K,) from the limit at `log_times` (K,), with the power `rate` of `log t` after `LATE` and the states
    after `EARLY` that are farther than the state before, `rises`, NaN of a run that ends by `LATE`. Of the last state:
    neurons `outside`, neither dead nor in the extremal sector of their sign, the `share` `||W_+||_F^2 / ||W||_F^2`,
    `function_error`, the largest `|f(x_i) / ||theta||^2 - limit|` over the largest limit (Corollary 1), `imbalance`,
    the largest `| |a_j| / ||a|| - ||w_j|| / ||W||_F |` (Eq. 9), the `kkt` residual (Appendix C), and `remainder`, the
    Frobenius norm of the part along neither ray. Of it `kept` stays for ever, as the state at `EARLY` predicts, and
    outweighs `c / log t` from the `log t` of `crossover` on.
    """
    data = run.dataset()
    W, a = (np.asarray(run.parameters[key], np.float64) for key in ("hidden_weight", "output_weight"))
    steps, losses = np.array(run.snapshot_iterations), np.array(run.losses)
    lr = float(getattr(run.config.optimizer, "lr", np.nan))
    times = np.concatenate([[0.0], np.cumsum(lr / losses[:-1])])
    moved = steps > 0
    last, out = W[-1], a[-1]
    signs = np.where(out > 0, 1, -1)
    sectors = sector_of(data.x, last)
    own = np.stack([predicted_sector(data.x, data.y, int(s)) for s in signs])
    size = float(np.sum(last**2) + np.sum(out**2))
    predicted = limit.function(data.x)
    measured = np.maximum(data.x @ last.T, 0.0) @ out / size
    norms = np.linalg.norm(last, axis=1)
    log_times = np.log(times[steps[moved]])
    distances = distance_to_limit(W[moved], limit.plus.w, limit.minus.w)
    early = int(np.flatnonzero(moved)[np.searchsorted(log_times[:-1], EARLY)])
    dead: kit.Bools = np.asarray((sectors <= 0).all(axis=1))
    remainder = float(distances[-1] * np.linalg.norm(last))
    kept = kept_remainder(W[early], a[early], [out * ((signs == s) & ~dead) for s in (1, -1)], dead)
    # ||W||^2 = nu log t and the last distance give nu and c
    nu = (remainder / distances[-1]) ** 2 / log_times[-1]
    c = np.sqrt(max(distances[-1] ** 2 - kept**2 / (nu * log_times[-1]), 0.0)) * log_times[-1]
    late = log_times > LATE
    fitted = np.polyfit(np.log(log_times[late]), np.log(distances[late]), 1) if late.sum() >= 3 else [np.nan]
    return kit.Evidence(
        scale=initial_scale(run),
        log_times=log_times,
        distances=distances,
        outside=int((~dead & ~(sectors == own).all(axis=1)).sum()),
        share=float(np.sum(last[out > 0] ** 2) / np.sum(last**2)),
        function_error=float(np.abs(measured - predicted).max() / np.abs(predicted).max()),
        imbalance=float(np.abs(np.abs(out) / np.linalg.norm(out) - norms / np.linalg.norm(norms)).max()),
        kkt=kkt_residual(last, out, data.x, data.y),
        remainder=remainder,
        kept=kept,
        crossover=float(c**2 * nu / kept**2),
        rate=float(fitted[0]),
        rises=kit.given(log_times[-1] > LATE, (np.diff(distances[log_times > EARLY]) > 0).sum()),
    )


def kept_remainder(W: kit.Floats, a: kit.Floats, groups: list[kit.Floats], dead: kit.Bools) -> float:
    """Return the Frobenius norm of the part that stays across the rays for ever, from a state `W` (m, d), `a` (m,).

    On gradient flow `C = W W^T - a a^T` of neurons with the same active points is conserved. With u the limit of
    a/||a|| of a group (`groups`: (m,), 0 elsewhere), the part of W across its ray has the squared norm
    `tr C - u^T C u` once `W^T u` is along the ray and the rest of `W w` equal to that of a. Dead rows stay as they are.
    """
    total = float(np.sum(W[dead] ** 2))
    for group in groups:
        inside, u = group != 0, group / max(float(np.linalg.norm(group)), 1e-300)
        across = np.sum((u @ W) ** 2) - (u @ a) ** 2
        total += float(np.sum(W[inside] ** 2) - np.sum(a[inside] ** 2) - across)
    return float(np.sqrt(max(total, 0.0)))


def initial_scale(run: kit.Run) -> float:
    """Return the scale of the initial weights, NaN where they have none."""
    return float(getattr(run.config.initialization, "scale", np.nan))


def sector_history(run: kit.Run) -> kit.Evidence:
    """Enumerate the extremal sectors of a run's data, and follow its neurons.

    `counts` (K, 4) at `times` (K,) are neurons that are dead, in sigma+ with a_j > 0, in sigma- with a_j < 0, anywhere
    else; `dead` and `outside` are the first and the last in the end (Lemma 1: none outside). Of the neurons, how many
    `joined` their extremal sector after the start, `left` it afterwards (Lemma 3: none) and had `sign_changes` of the
    output weight (Lemma A.4: none). `extremal` directions of the data, positive and negative (Lemma 2: 1 and 1);
    `predicted` of the two extremal sectors are those of Eqs. 13 and 14. The data meet Theorem 1's assumption where the
    support examples of each class `spans` the space.

    Raises ValueError when the data have more points than can be enumerated.
    """
    data = run.dataset()
    x, y = data.x, data.y
    both = [extremal_directions(x, y, sign) for sign in (1, -1)]
    theirs = [predicted_sector(x, y, sign) for sign in (1, -1)]
    agree = [len(one) == 1 and bool((one[0].sector == s).all()) for one, s in zip(both, theirs, strict=True)]
    W, a = (np.asarray(run.parameters[key], np.float64) for key in ("hidden_weight", "output_weight"))
    sectors = sector_of(x, W)  # (K, m, n)
    dead = (sectors <= 0).all(axis=-1)  # (K, m)
    inside = np.stack([(sectors == s).all(axis=-1) & (sign * a > 0) for s, sign in zip(theirs, (1, -1), strict=True)])
    entered = np.maximum.accumulate(inside, axis=1)
    optimizer = run.config.optimizer
    steps = np.array(run.snapshot_iterations)
    times = optimizer.times()[steps] if isinstance(optimizer, GradientFlow) else steps * getattr(optimizer, "lr", 1.0)
    elsewhere = ~dead & ~inside.any(axis=0)
    counts = np.stack([dead.sum(1), inside[0].sum(1), inside[1].sum(1), elsewhere.sum(1)], axis=1)
    return kit.Evidence(
        times=times,
        counts=counts,
        dead=int(counts[-1, 0]),
        outside=int(counts[-1, 3]),
        joined=int((inside.any(axis=(0, 1)) & ~inside[:, 0].any(axis=0)).sum()),
        left=int((entered & ~inside).any(axis=(0, 1)).sum()),
        sign_changes=int((np.sign(a) != np.sign(a[0])).any(axis=0).sum()),
        extremal=(len(both[0]), len(both[1])),
        predicted=sum(agree),
        spans=canonical_neurons(x, y).spans,
    )


def evidence(runs: kit.Runs) -> kit.Evidence:
    """Measure all runs: `paths` to the `limit`, and the fates of neurons along `flows` and by `sgd`.

    `kkt` is the KKT residual of the point of Lemma C.1, for random u and z (Appendix C), `G` (k,) is that of the data
    of `paths` at `angles` (k,) in the plane, `extremal` are the degrees of its positive and negative directions.
    """
    ordered = sorted(
        (run for role, run in runs.items() if role.startswith("scale")), key=lambda run: -initial_scale(run)
    )
    data = ordered[0].dataset()
    limit = canonical_neurons(data.x, data.y)
    angles = np.linspace(-180.0, 180.0, 721)
    circle = np.stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))], axis=1)
    both = [[one.direction for one in extremal_directions(data.x, data.y, sign)] for sign in (1, -1)]
    positive, negative = ([float(np.degrees(np.arctan2(w[1], w[0]))) for w in side] for side in both)
    u, z = np.abs(np.random.default_rng(0).standard_normal((2, 10))) * [[1, 0] * 5, [0, 1] * 5]
    return kit.Evidence(
        limit=limit,
        kkt=kkt_residual(*limit.kkt_point(u, z), data.x, data.y),
        paths=[limit_path(run, limit) for run in ordered],
        flows=[sector_history(run) for role, run in runs.items() if role.startswith("flow")],
        sgd=[sector_history(run) for role, run in runs.items() if role.startswith("sgd")],
        angles=angles,
        G=G(data.x, data.y, circle),
        extremal=(positive, negative),
    )


def claims(e: kit.Evidence) -> list[kit.Claim]:
    """Compare with Theorem 1, Corollary 1 and the lemmas."""
    large, small = e.paths[0], e.paths[-1]
    neurons = sum(int(one.counts[0].sum()) for one in e.flows)
    others, ended = sum(one.outside for one in e.flows), any(one.joined for one in e.flows)
    extremal = [count for one in e.flows for count in one.extremal] + [len(side) for side in e.extremal]
    return [
        kit.theory("assumptions", "The support examples of each class span the space (data sets for which they do not)",
                  "Section 2", kit.exactly(0), (not e.limit.spans) + sum(not one.spans for one in e.flows)),
        kit.claim("limit",
                  "W/||W|| goes to u w+' + z w-' (states from log t = 2 on that are farther than the one before)",
                  "Theorem 1, Eq. 8", kit.exactly(0), small.rises),
        kit.claim("rate",
                  "with the rate of linear networks, 1/log t, as long as that outweighs what is kept "
                  f"(power of log t, lambda = {small.scale:g})",
                  "Soudry et al. 2018, Theorem 5, for the linear subnetworks", kit.around(-1.0), small.rate),
        kit.claim("rate-late",
                  "and with 1/sqrt(log t) after that: what is across the rays keeps its size, and ||W|| grows with "
                  f"sqrt(log t) (power of log t, lambda = {large.scale:g})",
                  "gradient flow conserves W W' - a a' of a group", kit.around(-0.5), large.rate),
        kit.claim("kept",
                  "It keeps the size that W W' - a a' says at log t = 2 (distance times ||W|| over it, "
                  f"lambda = {large.scale:g})",
                  "gradient flow conserves W W' - a a' of a group", kit.around(1.0), large.remainder / large.kept),
        *[
            kit.finding(f"crossover-{name}", f"log t from which 1/sqrt(log t) outweighs, lambda = {path.scale:g}",
                        "Theorem 1", path.crossover)
            for name, path in zip(SCALES, e.paths, strict=False)
        ],
        kit.claim("output", "a/||a|| has the size of W/||W||, row by row (largest difference)",
                  "Theorem 1, Eq. 9; Lemma A.4", kit.less_than(1e-3), small.imbalance,
                  always="The start is balanced, and gradient flow conserves that."),
        kit.claim("share", "Both groups grow as nu log t: share of the positive one in ||W||^2",
                  "Proof of Theorem 1; nu = ||w+||, ||w-|| for the logistic loss",
                  kit.near(e.limit.share, 0.01), small.share),
        kit.claim("function",
                  "f/||theta||^2 goes to u relu(w+'x) - z relu(w-'x), u = z = 1/(2 ||w+|| + 2 ||w-||) (relative error)",
                  "Corollary 1", kit.less_than(0.01), small.function_error),
        kit.theory("kkt",
                   "u w+' + z w-' and a = ||w+|| u - ||w-|| z are a KKT point of the max-margin problem "
                   "(residual for random u, z)", "Lemma C.1, Eq. 77", kit.less_than(1e-8), e.kkt),
        kit.claim("kkt-trained", "The trained network goes to such a point (residual, smallest scale)",
                  "Appendix C; Lyu and Li 2020", kit.less_than(0.01), small.kkt),
        kit.claim("two-groups", "Every neuron dies or joins one of two groups (others, all scales but the largest)",
                  "Theorem 1, Lemma 1", kit.exactly(0),
                  sum(path.outside for path in e.paths[1:])),
        kit.finding("distance", "Final distance from the smallest scale", "Theorem 1", small.distances[-1]),
        kit.finding("log-time", "log t reached", "Theorem 1", small.log_times[-1]),
        kit.theory("lemma-2",
                  "There is exactly one positive and one negative extremal direction (data sets and signs where not)",
                  "Lemma 2", kit.exactly(0), sum(count != 1 for count in extremal)),
        kit.theory("lemma-2-sectors", "Their sectors are those of Eqs. 13 and 14 (sectors that are not)",
                  "Lemma 2, Eqs. 13, 14", kit.exactly(0), sum(2 - one.predicted for one in e.flows)),
        kit.claim("lemma-1",
                  "On gradient flow neurons turn off or reach the extremal sector of their sign (neurons that do not)",
                  "Lemma 1", kit.exactly(0), others),
        kit.claim("lemma-3", "A neuron that has entered its extremal sector never leaves (neurons that do)", "Lemma 3",
                  kit.exactly(0), kit.given(ended and not others, sum(one.left for one in e.flows))),
        kit.claim("signs", "Output weights keep their signs (neurons that do not)", "Lemma A.4", kit.exactly(0),
                  sum(one.sign_changes for one in e.flows),
                  always="Gradient flow from a balanced start conserves |a_j| = |w_j|, and a neuron at 0 stays there."),
        kit.theory("dead",
                  "A neuron dies with probability at most 1/2 (share of dead neurons; all of a network: extra-dead)",
                  "Proof of Theorem 1", kit.at_most(0.5), sum(one.dead for one in e.flows) / max(neurons, 1)),
        kit.finding("sgd-left", "The same by SGD: neurons that leave their extremal sector", "Lemma 3",
                    sum(one.left for one in e.sgd)),
        kit.finding("sgd-outside", "neither dead nor in their extremal sector at the end", "Lemma 1",
                    sum(one.outside for one in e.sgd)),
        kit.finding("sgd-signs", "output weights that change their sign", "Lemma A.4",
                    sum(one.sign_changes for one in e.sgd)),
        kit.finding("sgd-dead", "dead", "Lemma 1", sum(one.dead for one in e.sgd)),
    ]  # fmt: skip


def draw(e: kit.Evidence) -> kit.Drawing:
    """Draw the distances, the neurons of one flow by sector, and G on the circle."""
    figure, axes = kit.new_figure(3, 1, width=7.2, aspect=0.95)
    for path, color in zip(e.paths, kit.SERIES, strict=False):
        shown = path.log_times > 0.1
        label = rf"$\lambda={path.scale:g}$"
        axes[0].plot(path.log_times[shown], path.distances[shown], color=color, label=label)
    guide = np.array([10.0, 450.0])
    axes[0].plot(guide, 3.0 / guide, color=kit.PALETTE.theory, ls=(0, (4, 2)), lw=1.0, label=r"$\propto 1/\log t$")
    for k, path in enumerate(e.paths[:2]):
        floor = path.kept / path.remainder * path.distances[-1] * np.sqrt(path.log_times[-1] / guide)
        label = "" if k else r"kept, $\propto 1/\sqrt{\log t}$"
        axes[0].plot(guide, floor, color=kit.PALETTE.theory, ls=(0, (1, 1.5)), lw=1.0, label=label)
    axes[0].set(xscale="log", yscale="log", xlabel=r"$\log t$", ylabel="distance to the limit")
    kit.place_legend(axes[0], axes[0].get_legend_handles_labels()[0], columns=2)
    kit.panel_label(axes[0], 0, "Theorem 1")
    _draw_sectors(axes[1], e.flows[0])
    _draw_G(axes[2], e)
    return figure


def _draw_sectors(axes: kit.Axes, one: kit.Evidence) -> None:
    names = ("dead", r"in $\sigma^+$, $a_j>0$", r"in $\sigma^-$, $a_j<0$", "elsewhere")
    colors = (kit.PALETTE.muted, kit.PALETTE.positive, kit.PALETTE.negative, kit.PALETTE.theory)
    after = one.times > 0
    for k, (name, color) in enumerate(zip(names, colors, strict=True)):
        axes.plot(one.times[after], one.counts[after, k], color=color, label=name, drawstyle="steps-post")
    axes.set(xscale="log", xlabel="time $t$", ylabel="neurons")
    kit.place_legend(axes, axes.get_lines())
    kit.panel_label(axes, 1, "Lemmas 1 and 3")


def _draw_G(axes: kit.Axes, evidence: kit.Evidence) -> None:
    axes.plot(evidence.angles, evidence.G, color=kit.PALETTE.function, label="$G(w)$")
    for side, marker, color, name in zip(
        evidence.extremal, "^v", (kit.PALETTE.positive, kit.PALETTE.negative), ("maximum", "minimum"), strict=True
    ):
        heights = np.interp(side, evidence.angles, evidence.G)
        axes.plot(side, heights, marker, color=color, ms=7, ls="none", label=name)
    axes.margins(y=0.1)
    axes.set(xlabel="angle of $w$ (degrees)", ylabel="$G(w)$", xticks=(-180, -90, 0, 90, 180))
    kit.place_legend(axes, axes.get_lines())
    kit.panel_label(axes, 2, "Lemma 2")


def _wanted() -> dict[str, str | kit.Wanted]:
    wanted: dict[str, str | kit.Wanted] = {
        f"scale {scale}": kit.Wanted("phuong2021/small.yaml", (f"initialization.scale={scale}",)) for scale in SCALES
    }
    for kind in ("flow", "sgd"):
        for dim, seed in DRAWS:
            changes = (f"dataset.dim={dim}", f"seed={seed}")
            wanted[f"{kind} {dim} {seed}"] = kit.Wanted(f"phuong2021/small_{kind}.yaml", changes)
    return wanted


FIGURE = kit.Figure(
    id="phuong2021-extra-theorem1",
    caption=(
        "Not in the paper. (a) Distance of W/||W|| to the limit of Theorem 1 against the logarithm of time, for four "
        "scales of a balanced initialisation; dotted, for the two largest, the part that W W^T - a a^T keeps for ever. "
        "(b) Neurons of a run of gradient flow by sector. (c) The function G of Eq. 12 on the unit circle, with its "
        "strict maxima (positive extremal) and minima (negative extremal)."
    ),
    configs=_wanted(),
    origin={"balanced start, loss, flow": "stated", "all else": "chosen"},
)  # fmt: skip
