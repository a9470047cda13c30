"""Interim names."""

from dynamics_cli.measures.snapshots import Every as RegularSnapshots
from dynamics_cli.measures.snapshots import Geometric as GeometricSnapshots
