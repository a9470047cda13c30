"""Figure 5 left: what the generators of both losses give, against steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli.architectures.gan import Gan
from dynamics_cli.datasets.mixture import Mixture
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.modes import coverage
from dynamics_cli.reproduction.figure import Runs
from dynamics_cli.runs import Run

LOSSES = {"logistic": "cross-entropy", "hinge": "hinge"}
SAMPLES = 2000
GRID = 96
BANDWIDTH = 0.5
"""Of the densities, in deviations of the data's Gaussians."""


@dataclass(frozen=True)
class Path:
    """One pair of networks along its training."""

    steps: Ints
    covered: Ints
    """Modes of 8 that have at least 1 % of the samples."""
    good: Floats
    """Share of samples within three deviations of a mode."""
    samples: Floats
    """(SAMPLES, 2) at the end."""


@dataclass(frozen=True)
class Evidence:
    """Everything that claims and drawing need."""

    centres: Floats
    deviation: float
    data: Floats
    """(SAMPLES, 2)."""
    paths: dict[str, list[Path]]
    """Loss -> one path a seed."""
    extent: float
    densities: dict[str, Floats]
    """`data` and losses -> (GRID, GRID) smoothed density of the samples of the first seed, rows are y."""


def evidence(runs: Runs) -> Evidence:
    """Sample every generator at all recorded states; roles are `<loss>-<seed>`."""
    first = next(iter(runs.values())).config.dataset
    assert isinstance(first, Mixture)
    paths: dict[str, list[Path]] = {loss: [] for loss in LOSSES}
    for role, run in runs.items():
        paths[role.split("-")[0]].append(_path(run))
    data = next(iter(runs.values())).dataset().x[:SAMPLES]
    extent = 1.6 * first.radius
    shown = {"data": data, **{loss: found[0].samples for loss, found in paths.items()}}
    width = BANDWIDTH * first.deviation
    return Evidence(
        centres=first.centres(),
        deviation=first.deviation,
        data=data,
        paths=paths,
        extent=extent,
        densities={name: density(samples, extent, width) for name, samples in shown.items()},
    )


def _path(run: Run) -> Path:
    architecture, dataset = run.config.architecture, run.config.dataset
    assert isinstance(architecture, Gan)
    assert isinstance(dataset, Mixture)
    z = np.random.default_rng(run.config.seed).standard_normal((SAMPLES, architecture.noise_dim))
    means, found, samples = dataset.centres(), [], np.empty((0, 2))
    for k in range(len(run.snapshot_iterations)):
        samples = architecture.generate(run.state(k), z)
        found.append(coverage(samples, means, dataset.deviation))
    return Path(
        steps=np.asarray(run.snapshot_iterations),
        covered=np.array([one.covered for one in found]),
        good=np.array([one.good for one in found]),
        samples=samples,
    )


def density(samples: Floats, extent: float, width: float) -> Floats:
    """Return the density of points (n, 2) on a square grid, smoothed by a Gaussian of deviation `width`."""
    ticks = np.linspace(-extent, extent, GRID)
    x, y = (
        np.exp(-((ticks[:, None] - samples[None, :, axis]) ** 2) / (2 * width**2)) for axis in (0, 1)
    )  # (GRID, n) each
    return np.asarray(y @ x.T / (2 * np.pi * width**2 * len(samples)))
