"""The initial weights that the released code draws, by torch's generator."""

from __future__ import annotations

from collections.abc import Mapping

from dynamics_cli.kinds import Floats, Initialization, Positive, Problem, Streams


class ReleasedWeights(Initialization, kind="doshi2023_weights"):
    """Gaussian weights of all layers, with the draws of the released code of Doshi et al. 2023
    where the seed is 0.

    The generator gives the labels of `dataset.replaced_labels` first, then the unused start of
    `torch.nn.Linear`.
    """

    example = "{kind: doshi2023_weights, scale: 0.05}"
    scale: Positive
    """Standard deviation; released: `0.5 / (2 width)^(1/3)`."""

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return the weights."""
        import torch

        generator = torch.Generator().manual_seed(streams.seed)
        replaced = problem.dataset.replaced
        torch.randint(2, (0 if replaced is None else int(replaced.sum()),), generator=generator)
        empty = {name: torch.empty(shape) for name, shape in problem.shapes.items()}
        for tensor in empty.values():
            tensor.uniform_(generator=generator)
        return {
            name: tensor.normal_(0.0, self.scale, generator=generator).double().numpy()
            for name, tensor in empty.items()
        }
