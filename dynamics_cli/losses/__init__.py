"""Each loss with its derivative, for torch tensors and NumPy arrays, a kind each."""

from dynamics_cli.config.bases import Loss


def get_loss(section):  # interim
    return section
