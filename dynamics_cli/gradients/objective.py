"""The training loss and its gradient as functions of the trained weights.

`Derivatives` has what measures ask beyond: second derivatives and kernels, at a recorded state.
"""

from __future__ import annotations

from collections.abc import Callable

from dynamics_cli.gradients.derivatives import derivatives_of, trained_names
from dynamics_cli.kinds import Floats, Parameters, Problem, State

Objective = Callable[[Floats], tuple[float, Floats]]
"""Trained weights (P,) -> training loss and its gradient (P,), float64."""


def objective_of(
    problem: Problem, initial: Parameters, backend: str, device: str = "cpu"
) -> Objective:
    """Return the training loss and its gradient as functions of the trained weights.

    Args:
        problem: gives samples and loss.
        initial: weights by name, of which those that are not trained stay.
        backend: `compiled` for the engine, else torch.
        device: a device of torch.
    """
    if backend == "compiled":
        return _by_engine(problem, initial)
    return _by_torch(problem, initial, device)


def _by_engine(problem: Problem, initial: Parameters) -> Objective:
    samples = problem.dataset
    state = State(problem, initial, lambda: initial, 0)
    potential = derivatives_of(state).potential(samples.n, samples.y)
    count = samples.n * problem.loss.sample_weight(samples.n)  # 1 unless losses are summed

    def both(theta: Floats) -> tuple[float, Floats]:
        losses, gradients = potential(theta[None], None)
        return count * float(losses[0]), count * gradients[0]

    return both


def _by_torch(problem: Problem, initial: Parameters, device: str) -> Objective:
    import torch

    from dynamics_cli.gradients.totals import total_and_gradients

    samples = problem.dataset
    model = problem.config.architecture.network(samples.d, initial, torch.float64, device)
    x = torch.from_numpy(samples.x).to(device)  # (n, d)
    y = torch.from_numpy(problem.loss.numbered(samples.y)).to(device)  # (n,)
    block = problem.block_samples(device)
    named = dict(model.named_parameters())
    weights: list[torch.Tensor] = [named[name] for name in trained_names(problem)]
    sizes = [w.numel() for w in weights]

    def both(theta: Floats) -> tuple[float, Floats]:
        parts = torch.split(torch.from_numpy(theta).to(device), sizes)
        with torch.no_grad():
            for w, part in zip(weights, parts, strict=True):
                w.copy_(part.view_as(w))
        loss, gradients = total_and_gradients(model, problem.loss, x, y, weights, block)
        return float(loss), torch.cat([g.flatten() for g in gradients]).cpu().numpy()

    return both
