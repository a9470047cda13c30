"""Trained networks beside the closed forms of Appendices A.2, A.4 and A.7."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from dynamics_cli.runs import Run

from .theory.several import hidden_layer, orthogonal_mode, softmax_mode
from .trained import Curve, confidence, layers, one_point, outputs, preactivations, times


def layer_curves(run: Run) -> list[Curve]:
    """Return both classes of a network of several neurons per class (A.4); `y` is that of the class's first neuron."""
    signs = np.sign(layers(run)[-1][0, 0])
    curves = []
    for k, label in enumerate((1, -1)):
        x, norm, p = one_point(run, label)
        own = signs == label
        y = preactivations(run, x[None])[:, 0, own]  # (K, h)
        path = hidden_layer(times(run), y[0], layers(run)[-1][0, 0, own], norm, p=p, label=label)
        name = f"$D_{k + 1}$, {own.sum()} neurons"
        curves.append(Curve(name, times(run), y[:, 0], path.y[:, 0], confidence(run, x, label), path.confidence))
    return curves


def orthogonal_curve(run: Run) -> Curve:
    """Return the confidence in m orthogonal points of D_1, of norm 1, on which one neuron starts alike (A.7)."""
    x = run.dataset().x
    y = preactivations(run, x)[:, :, 0]  # (K, m)
    z0 = float(layers(run)[-1][0, 0, 0])
    path = orthogonal_mode(times(run), float(y[0, 0]), z0, len(x), float(np.linalg.norm(x[0])))
    P = expit(outputs(run, x))  # (K, m)
    worst = np.abs(P - path.confidence[:, None]).argmax(axis=1)
    return Curve(f"$m={len(x)}$", times(run), y[:, 0], path.y, P[np.arange(len(P)), worst], path.confidence)


def classes_curves(run: Run) -> list[Curve]:
    """Return the modes of a C-class network with one neuron per class, in full batches (A.2)."""
    dataset, (W, Z) = run.dataset(), layers(run)
    share = 1.0 if run.config.loss.reduction == "sum" else 1.0 / dataset.n
    logits = outputs(run, dataset.x)  # (K, n, C)
    P = np.exp(logits - logits.max(axis=-1, keepdims=True))
    P /= P.sum(axis=-1, keepdims=True)
    curves = []
    for x, label, probability in zip(dataset.x, dataset.y.astype(int), np.moveaxis(P, 1, 0), strict=True):
        y = W[:, label] @ x
        others = np.delete(Z[0, :, label], label)
        norm, z0 = float(np.linalg.norm(x)), float(Z[0, label, label] - others.mean())
        path = softmax_mode(times(run), float(y[0]), z0, Z.shape[1], norm, p=share)
        name = rf"$\Vert x_{label + 1}\Vert={norm:g}$"
        curves.append(Curve(name, times(run), y, path.y, probability[:, label], path.confidence))
    return curves
