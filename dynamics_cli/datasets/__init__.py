"""Data sets, a kind a file, and the data files that they read."""

from dynamics_cli.datasets.samples import Samples as Dataset
from dynamics_cli.datasets.samples import make_samples as make_dataset
from dynamics_cli.datasets.streams import Streams


def build_dataset(config, seed):  # interim
    return config.load(Streams(seed))
