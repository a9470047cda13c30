"""Gradient, Hessian and Jacobian of a network as dense matrices of `torch.func`, and what follows
from them: the reference of all measures of curvature.
"""

import copy
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev
from torch.nn.attention import SDPBackend, sdpa_kernel


class Elementary(nn.LayerNorm):
    """Of `nn.LayerNorm` nested derivatives by `torch.func` are wrong in torch 2.13: their
    Hessian is not symmetric.
    """

    def forward(self, input):
        centred = input - input.mean(-1, keepdim=True)
        scale = ((centred**2).mean(-1, keepdim=True) + self.eps).sqrt()
        return self.weight * centred / scale + self.bias


def doubled(one):
    return one.double() if one.is_floating_point() else one


class Dense:
    """Loss, gradient, Hessian, Jacobian and gradients of samples, by `torch.func` on trained
    weights as a vector.
    """

    def __init__(self, module, x, y, loss, factor=1.0):
        self.factor = factor
        self.y = doubled(y)
        self.loss = copy.deepcopy(loss).double() if isinstance(loss, nn.Module) else loss
        self.module = copy.deepcopy(getattr(module, "_orig_mod", module)).double().eval()
        for part in self.module.modules():
            if isinstance(part, nn.LayerNorm):
                part.__class__ = Elementary
        if not isinstance(x, dict):
            inputs = x if isinstance(x, tuple) else (x,)
            x = dict(enumerate(inputs))
        self.x = {name: doubled(one) for name, one in x.items()}
        self.weights = {
            name: weight for name, weight in self.module.named_parameters() if weight.requires_grad
        }
        self.sizes = [weight.numel() for weight in self.weights.values()]
        self.theta = nn.utils.parameters_to_vector(self.weights.values()).detach()

    def outputs(self, theta, part=slice(None)):
        parts = zip(self.weights.items(), theta.split(self.sizes), strict=True)
        weights = {name: values.view_as(old) for (name, old), values in parts}
        args = [one[part] for name, one in self.x.items() if isinstance(name, int)]
        named = {name: one[part] for name, one in self.x.items() if isinstance(name, str)}
        with sdpa_kernel(SDPBackend.MATH):
            return functional_call(self.module, weights, tuple(args), named)

    def total(self, theta, part=slice(None)):
        return self.factor * self.loss(self.outputs(theta, part), self.y[part])

    def values(self, theta):
        """Return the loss of each sample."""
        return torch.stack([self.total(theta, slice(k, k + 1)) for k in range(len(self.y))])

    @cached_property
    def L(self):
        return float(self.total(self.theta))

    @cached_property
    def g(self):
        return grad(self.total)(self.theta).numpy()

    @cached_property
    def H(self):
        return hessian(self.total)(self.theta).detach().numpy()

    @cached_property
    def J(self):
        """The derivatives of all outputs, (n C, P)."""
        return jacrev(lambda at: self.outputs(at).flatten())(self.theta).detach().numpy()

    @cached_property
    def each(self):
        """The gradients of the losses of samples, (n, P)."""
        return jacrev(self.values)(self.theta).detach().numpy()

    def gauss_newton(self):
        h = self.outputs(self.theta).detach()

        def loss(flat):
            return self.factor * self.loss(flat.view_as(h), self.y)

        return self.J.T @ hessian(loss)(h.flatten()).numpy() @ self.J

    def blocks(self):
        ends = np.cumsum([0, *self.sizes])
        return [self.H[a:b, a:b] for a, b in pairwise(ends)]


def dense_of(state):
    """Return the matrices of a problem of `dyn` at a state."""
    problem = state.problem
    network = problem.config.architecture.network(problem.dataset.d, state.start, torch.float64)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.copy_(torch.from_numpy(state.parameters[name]))
    x = torch.from_numpy(problem.dataset.x)
    y = torch.from_numpy(problem.loss.numbered(problem.dataset.y))
    return Dense(network, x, y, problem.loss.total)


def largest(H):
    return float(np.linalg.eigvalsh(H)[-1])


EXPECTED = {
    "train_loss": lambda d: d.L,
    "gradient_norm": lambda d: float(np.linalg.norm(d.g)),
    "sharpness": lambda d: largest(d.H),
    "hessian_trace": lambda d: float(np.trace(d.H)),
    "gauss_newton": lambda d: largest(d.gauss_newton()),
    "gradient_noise": lambda d: float((d.each**2).sum(1).mean() - d.g @ d.g),
    "smallest_eigenvalue": lambda d: float(np.linalg.eigvalsh(d.H)[0]),
    "batch_sharpness": lambda d: float(d.g @ d.H @ d.g / (d.g @ d.g)),  # of a single batch
    "weight_norm": lambda d: float(d.theta.norm()),
}
"""Measure -> the number that dense matrices give."""
