"""Figure 5 left: a GAN on eight Gaussians, trained with cross-entropy and with the hinge loss.

`dyn reproduce tachet2018-fig5-gan`. About 35 s, nearly all of it training; `--preset full` trains five seeds for
20 000 steps (about 15 min on two cores; it can be interrupted and goes on where it was).
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import panel_label, set_axis_label
from dynamics_cli.plotting.style import PALETTE, SERIES, new_figure
from dynamics_cli.reproduction.claims import Claim, claim, finding, more_than
from dynamics_cli.reproduction.figure import Figure, Wanted

from .gan import LOSSES, Evidence, evidence

SEEDS = 5
STEPS = 20_000
COLORS = {"logistic": SERIES[0], "hinge": SERIES[1]}


def wanted(seeds: int, *overrides: str) -> dict[str, Wanted]:
    """Return the runs of all seeds under either loss."""
    return {
        f"{loss}-{seed}": Wanted("tachet2018/gan.yaml", (f"loss.kind={loss}", f"seed={seed}", *overrides))
        for seed in range(seeds)
        for loss in LOSSES
    }


def claims(found: Evidence) -> list[Claim]:
    """Compare with Section 5: what "incomparably better" should at least mean."""
    covered = {loss: float(np.mean([path.covered[-1] for path in paths])) for loss, paths in found.paths.items()}
    good = {loss: float(np.mean([path.good[-1] for path in paths])) for loss, paths in found.paths.items()}
    seeds, steps = len(found.paths["hinge"]), int(found.paths["hinge"][0].steps[-1])
    mean = f"mean of {seeds} seeds, {steps} steps" if seeds > 1 else f"one seed, {steps} steps"
    return [
        claim(
            "modes", f"Samples of the hinge loss are better: modes covered, hinge minus cross-entropy ({mean})",
            "Figure 5", expected=more_than(0), measured=covered["hinge"] - covered["logistic"],
        ),
        claim(
            "good", f"Samples of the hinge loss are better: share of good samples, the same difference ({mean})",
            "Figure 5", expected=more_than(0), measured=good["hinge"] - good["logistic"],
        ),
        *(
            finding(f"modes-{loss}", f"Modes covered of {len(found.centres)}, {name}", "", measured=covered[loss])
            for loss, name in LOSSES.items()
        ),
        *(
            finding(f"good-{loss}", f"Share of samples within 3 deviations of a mode, {name}", "", measured=good[loss])
            for loss, name in LOSSES.items()
        ),
        *(
            finding(
                f"most-{loss}", f"Most modes covered at any recorded step, mean of the seeds, {name}", "",
                measured=float(np.mean([path.covered.max() for path in found.paths[loss]])),
            )
            for loss, name in LOSSES.items()
        ),
    ]  # fmt: skip


def draw(found: Evidence) -> Drawing:
    """Draw samples, their densities, and both measures against steps."""
    figure, axes = new_figure(3, 3, aspect=0.86)
    shown = {"data": found.data, **{loss: paths[0].samples for loss, paths in found.paths.items()}}
    titles = {"data": "data", **LOSSES}
    for k, (name, samples) in enumerate(shown.items()):
        _draw_samples(axes[k], found, samples, COLORS.get(name, PALETTE.data))
        panel_label(axes[k], k, titles[name])
        _draw_density(axes[3 + k], found, name)
        panel_label(axes[3 + k], 3 + k, f"density, {titles[name]}")
    _draw_history(axes[6], found, "covered")
    axes[6].set_ylim(-0.2, len(found.centres) + 0.2)
    axes[6].yaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 4, 10]))
    panel_label(axes[6], 6, f"modes covered, of {len(found.centres)}")
    _draw_history(axes[7], found, "good")
    axes[7].set_ylim(-0.03, 1.03)
    panel_label(axes[7], 7, "share of good samples")
    axes[8].axis("off")
    axes[8].legend(*axes[6].get_legend_handles_labels(), loc="center left", frameon=False)
    return figure


def _square(axes: Axes, extent: float) -> None:
    axes.set(xlim=(-extent, extent), ylim=(-extent, extent), aspect="equal", xticks=(-1, 0, 1), yticks=(-1, 0, 1))


def _draw_samples(axes: Axes, found: Evidence, samples: Floats, color: str) -> None:
    axes.plot(*samples.T, ".", ms=1.2, color=color, alpha=0.5, mec="none", rasterized=True)
    axes.plot(*found.centres.T, "+", ms=4, color=PALETTE.theory, mew=0.6)
    _square(axes, found.extent)


def _draw_density(axes: Axes, found: Evidence, name: str) -> None:
    e = found.extent
    # one scale for all, that of the data: a collapsed generator is simply saturated
    axes.imshow(
        found.densities[name], origin="lower", extent=(-e, e, -e, e), cmap="viridis",
        vmin=0, vmax=float(found.densities["data"].max()), interpolation="bilinear",
    )  # fmt: skip
    _square(axes, e)


def _draw_history(axes: Axes, found: Evidence, measure: str) -> None:
    for loss, paths in found.paths.items():
        values = np.array([getattr(path, measure) for path in paths], dtype=float)  # (seeds, K)
        axes.plot(paths[0].steps, values.mean(axis=0), color=COLORS[loss], lw=1.4, label=LOSSES[loss])
        if len(values) > 1:
            axes.plot(paths[0].steps, values.T, color=COLORS[loss], lw=0.5, alpha=0.5)
    set_axis_label(axes.xaxis, "steps", (0.0, float(axes.get_xlim()[1])))
    axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))


FIGURE = Figure(
    id="tachet2018-fig5-gan",
    caption=(
        "(a) Data, (b, c) samples of generators trained with cross-entropy and with the hinge loss (crosses: means of "
        "the Gaussians). (d-f) Densities of the same points on one scale. (g) Modes that have at least 1 % of the "
        "samples. (h) Share of samples within three deviations of a mode. With several seeds, thick lines are means."
    ),
    configs=wanted(1),
    presets={"full": wanted(SEEDS, f"optimizer.iterations={STEPS}", "record.snapshots.interval=1000")},
    origin={
        "unit circle, 8 Gaussians": "stated",
        "networks and noise": "stated",
        "Adam": "stated",
        "deviation, batch, steps": "assumed",
        "initial weights": "assumed",
        "generator loss": "assumed",
    },
    evidence=evidence,
    claims=claims,
    draw=draw,
)
