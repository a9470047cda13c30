"""Interim names."""

from dynamics_cli.datasets.mixture import Mixture as MixtureDataset
from dynamics_cli.datasets.orthogonally_separable import OrthogonallySeparable as OrthogonallySeparableDataset
from dynamics_cli.datasets.points import Points as PointsDataset
