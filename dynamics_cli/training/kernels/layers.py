"""Networks of layers `h_l = sigma(c_l h_{l-1} W_l + b_l)` of any depth, and diagonal linear ones, in one flat array.

Matrices stand as (columns, rows) of the network's own: `z = h W`. Products are BLAS's, on one thread, also where they
are tiny: its kernels for small matrices are faster than loops. All sums have a fixed order: samples come in chunks
whose number depends on the problem alone, and a chunk has the same bits on whatever thread it is worked on.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import overload

from dynamics_cli.compiling import STRICT
from dynamics_cli.training import kernels as number

FREE: dict[str, Any] = {**STRICT, "nogil": True}
"""Of kernels that Python's threads call side by side."""
PIECE: dict[str, Any] = {**STRICT, "cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Of their pieces."""


@numba.njit(**PIECE)
def expit(z, one):  # type: ignore[no-untyped-def]
    """Return `1 / (1 + exp(-z))`, without overflow."""
    small = np.exp(-abs(z))
    return (one if z > 0 else small) / (one + small)


@numba.njit(**PIECE)
def activate(sigma, alpha, h, s):  # type: ignore[no-untyped-def]
    """Replace `h` (n,), arguments z, by sigma(z), and fill `s` with sigma'(z); `alpha` is slope or inner factor."""
    one = h.dtype.type(1)
    two, half = one + one, one / (one + one)
    if sigma == number.LEAKY:
        for k in range(h.shape[0]):
            positive = h[k] > 0
            s[k] = one if positive else alpha
            h[k] = h[k] if positive else alpha * h[k]
    elif sigma == number.TANH:
        for k in range(h.shape[0]):
            h[k] = math.tanh(h[k])
            s[k] = one - h[k] * h[k]
    elif sigma == number.ERF:
        peak = h.dtype.type(2 / math.sqrt(math.pi)) * alpha
        for k in range(h.shape[0]):
            z = alpha * h[k]
            s[k] = peak * math.exp(-z * z)
            h[k] = math.erf(z)
    elif sigma == number.SIGMOID:
        for k in range(h.shape[0]):
            z = h[k]
            h[k] = expit(z, one)
            s[k] = h[k] * expit(-z, one)
    elif sigma == number.SOFTPLUS:
        for k in range(h.shape[0]):
            z = h[k]
            s[k] = expit(z, one)
            h[k] = max(z, z - z) + math.log1p(math.exp(-abs(z)))
    elif sigma == number.GELU:
        root, peak = h.dtype.type(1 / math.sqrt(2)), h.dtype.type(1 / math.sqrt(2 * math.pi))
        for k in range(h.shape[0]):
            z = h[k]
            Phi = half * math.erfc(-z * root)
            h[k] = z * Phi
            s[k] = Phi + z * peak * math.exp(-half * z * z)
    elif sigma == number.SILU:
        for k in range(h.shape[0]):
            z = h[k]
            p = expit(z, one)
            h[k] = z * p
            s[k] = p * (one + z * expit(-z, one))
    elif sigma == number.QUADRATIC:
        for k in range(h.shape[0]):
            z = h[k]
            h[k] = z * z
            s[k] = two * z
    elif sigma == number.CUBIC:
        for k in range(h.shape[0]):
            z = h[k]
            h[k] = z * z * z
            s[k] = (two + one) * z * z


@numba.njit(**PIECE)
def compare(kind, f, y, delta, weight):  # type: ignore[no-untyped-def]
    """Fill `delta` (n, C) with `weight dl/df`; return the sum of the losses of outputs `f` (n, C) in float64."""
    n, C = f.shape
    one, total = weight / weight, 0.0
    zero = one - one
    for k in range(n):
        if kind == number.CROSS_ENTROPY:
            top, label = f[k, 0], int(y[k, 0])
            for c in range(1, C):
                top = max(top, f[k, c])
            summed = zero
            for c in range(C):
                delta[k, c] = math.exp(f[k, c] - top)
                summed += delta[k, c]
            total += math.log(summed) - (f[k, label] - top)
            for c in range(C):
                p = delta[k, c] / summed
                delta[k, c] = weight * (p - one if c == label else p)
            continue
        for c in range(C):
            h, t = f[k, c], y[k, c]
            if np.isnan(t):  # an entry of a matrix that is not seen
                delta[k, c] = zero
                continue
            z = t * h
            if kind == number.MSE:
                value, slope = (h - t) * (h - t), (h - t) + (h - t)
            elif kind == number.HALF_MSE:
                value, slope = (h - t) * (h - t) / (one + one), h - t
            elif kind == number.LOGISTIC:
                small = math.exp(-abs(z))
                value, slope = max(-z, zero) + math.log1p(small), -t * (small if z > 0 else one) / (one + small)
            elif kind == number.EXPONENTIAL:
                value = math.exp(-z)
                slope = -t * value
            else:
                value, slope = max(one - z, zero), -t if z < one else zero
            total += value
            delta[k, c] = weight * slope
    return total


@numba.njit(**PIECE)
def scale_by(z, c):  # type: ignore[no-untyped-def]
    """Multiply `z` (n, m) by a number."""
    for k in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[k, j] *= c


def backpropagate(
    net: Any, at: Any, sigma: Any, alpha: Any, theta: Any, x: Any, y: Any, base: Any, weight: Any, loss: Any, H: Any,
    S: Any, T: Any, g: Any, wanted: Any,
) -> Any:  # fmt: skip
    """Stand for `through_layers`, or for `diagonal` where `at` is None: of either a kernel is compiled on its own."""
    raise NotImplementedError("this is for compiled code")


@overload(backpropagate, jit_options=PIECE)  # type: ignore[arg-type]
def _backpropagate(net, at, sigma, alpha, theta, x, y, base, weight, loss, H, S, T, g, wanted):  # type: ignore[no-untyped-def]
    return diagonal if isinstance(at, types.NoneType) else through_layers


def through_layers(net, at, sigma, alpha, theta, x, y, base, weight, loss, H, S, T, g, wanted):  # type: ignore[no-untyped-def]
    """Fill `g` (P,), where it is wanted, with the gradient of `weight` times the summed losses; return their sum.

    `x` (n, d), `y` (n, 1 or C), `base` (n, C) is subtracted from the outputs; where `scale` is 0, it becomes the
    outputs. `H`, `S` hold activations and, after the way forward, slopes and then `dL/dz` by layer; `T` is scratch.
    """
    sizes, learns, multipliers, scale = net
    n, L = x.shape[0], at.shape[0]
    one, p = weight / weight, 0
    h = x
    for layer in range(L):
        rows, m = sizes[layer], sizes[layer + 1]
        z = H[p : p + n * m].reshape((n, m))
        np.dot(h, theta[at[layer, 0] : at[layer, 0] + rows * m].reshape((rows, m)), z)
        if multipliers[layer] != one:
            scale_by(z, multipliers[layer])
        if at[layer, 1] >= 0:
            b = theta[at[layer, 1] : at[layer, 1] + m]
            for k in range(n):
                for j in range(m):
                    z[k, j] += b[j]
        if layer + 1 < L and sigma != number.LINEAR:
            activate(sigma, alpha, H[p : p + n * m], S[p : p + n * m])
        h = z
        p += n * m
    C = sizes[L]
    p -= n * C
    for k in range(n):
        for c in range(C):
            if scale == 0:
                base[k, c] = h[k, c]
            h[k, c] = scale * (h[k, c] - base[k, c])
    delta = S[p : p + n * C].reshape((n, C))
    total = compare(loss, h, y, delta, weight)
    if not wanted:
        return total
    if scale != one:
        scale_by(delta, scale)
    lowest = 0
    while lowest < L - 1 and not (learns[lowest, 0] or learns[lowest, 1]):
        lowest += 1
    for layer in range(L - 1, lowest - 1, -1):
        rows, m = sizes[layer], sizes[layer + 1]
        before = p - n * rows
        if learns[layer, 1]:
            b = g[at[layer, 1] : at[layer, 1] + m]
            for j in range(m):
                b[j] = delta[0, j]
            for k in range(1, n):
                for j in range(m):
                    b[j] += delta[k, j]
        if multipliers[layer] != one:
            scale_by(delta, multipliers[layer])
        h = x if layer == 0 else H[before:p].reshape((n, rows))
        if learns[layer, 0]:
            np.dot(h.T, delta, g[at[layer, 0] : at[layer, 0] + rows * m].reshape((rows, m)))
        if layer > lowest:
            W = theta[at[layer, 0] : at[layer, 0] + rows * m].reshape((rows, m))
            slopes = S[before:p]
            if sigma == number.LINEAR:
                np.dot(delta, W.T, slopes.reshape((n, rows)))
            else:
                towards = T[: n * rows]
                np.dot(delta, W.T, towards.reshape((n, rows)))
                for k in range(towards.shape[0]):
                    slopes[k] *= towards[k]
            delta = slopes.reshape((n, rows))
            p = before
    return total


def diagonal(net, at, sigma, alpha, theta, x, y, base, weight, loss, H, S, T, g, wanted):  # type: ignore[no-untyped-def]
    """Do as `through_layers` for `f = x (u^D - v^D)`, `theta = (u, v)`; D stands where the layers have their slope."""
    scale = net[3]
    n, d, one = x.shape[0], x.shape[1], weight / weight
    f, delta = H[:n], S[:n]
    beta, u, v = T[:d], T[d : 2 * d], T[2 * d : 3 * d]  # u^(D-1), v^(D-1)
    for i in range(d):
        u[i], v[i] = (theta[i], theta[d + i]) if alpha > one else (one, one)
    for _ in range(int(alpha) - 2):
        for i in range(d):
            u[i] *= theta[i]
            v[i] *= theta[d + i]
    for i in range(d):
        beta[i] = u[i] * theta[i] - v[i] * theta[d + i]
    np.dot(x, beta, f)
    for k in range(n):
        if scale == 0:
            base[k, 0] = f[k]
        f[k] = scale * (f[k] - base[k, 0])
    total = compare(loss, f.reshape((n, 1)), y, delta.reshape((n, 1)), weight)
    if wanted:
        np.dot(x.T, delta, beta)
        for i in range(d):
            g[i] = scale * alpha * u[i] * beta[i]
            g[d + i] = -scale * alpha * v[i] * beta[i]
    return total


@numba.njit(**PIECE)
def update(rule, theta, g, memory, segments, factors, lr, settings, t, divisor):  # type: ignore[no-untyped-def]
    """Do update `t` of `theta` (P,), given the gradient `g`, to be divided by `divisor`, which becomes scratch.

    `segments` (S, 2) says where trained tensors begin and end, `factors` (S,) what multiplies their steps. `memory`
    (2, P) is what the optimizer remembers; `settings` are its numbers, see `steppers/layers.py`. Of weights whose
    gradient stays 0 (dead units) the memory ends at 0: on denormal numbers a step takes twice as long.
    """
    real = theta.dtype.type
    mu, nesterov, decay, decoupled = real(settings[0]), settings[1] > 0, real(settings[2]), settings[3] > 0
    beta2, eps, per_tensor = real(settings[5]), real(settings[6]), settings[7] > 0
    rest1, rest2 = real(1 - settings[4]), real(1 - settings[5])
    zero, tiny = real(0), real(settings[8])
    correction1, correction2 = 1.0, 1.0
    if rule in (number.ADAM, number.GROUP_RMSPROP):
        correction1, correction2 = 1 - settings[4] ** (t + 1), 1 - settings[5] ** (t + 1)
    root = real(math.sqrt(correction2))
    square = 0.0
    if rule == number.NORMALIZED or (rule == number.GROUP_RMSPROP and not per_tensor):
        for q in range(segments.shape[0]):
            for i in range(segments[q, 0], segments[q, 1]):
                square += np.float64(g[i]) * np.float64(g[i])
    for q in range(segments.shape[0]):
        first, last = segments[q]
        w, d, M, V = theta[first:last], g[first:last], memory[0, first:last], memory[1, first:last]
        full = lr * factors[q]
        step = real(full)
        if divisor != 1.0:
            for i in range(w.shape[0]):
                d[i] /= real(divisor)
        if decoupled and decay != zero:
            shrink = real(1 - full * settings[2])
            for i in range(w.shape[0]):
                w[i] *= shrink
        elif decay != zero:
            for i in range(w.shape[0]):
                d[i] += decay * w[i]
        if rule == number.ADAM:
            step = real(full / correction1)
            for i in range(w.shape[0]):
                m = M[i] + rest1 * (d[i] - M[i])
                v = beta2 * V[i] + rest2 * d[i] * d[i]
                nothing = abs(m) < tiny
                M[i] = zero if nothing else m
                V[i] = zero if nothing and v < tiny else v
                w[i] -= step * M[i] / (np.sqrt(V[i]) / root + eps)
            continue
        if rule == number.RMSPROP:
            for i in range(w.shape[0]):
                V[i] = beta2 * V[i] + rest2 * d[i] * d[i]
                d[i] /= np.sqrt(V[i]) + eps
        elif rule in (number.GROUP_RMSPROP, number.NORMALIZED):
            if per_tensor:
                square = 0.0
                for i in range(w.shape[0]):
                    square += np.float64(d[i]) * np.float64(d[i])
            if rule == number.NORMALIZED:
                step = real(full / math.sqrt(square)) if square > 0 else zero
            else:  # the mean square stands where that of the first weight would
                V[0] = beta2 * V[0] + rest2 * real(square)
                step = real(full / (math.sqrt(V[0] / correction2) + settings[6]))
        if mu >= zero:
            for i in range(w.shape[0]):
                m = mu * M[i] + d[i]
                M[i] = zero if abs(m) < tiny else m
                d[i] = d[i] + mu * M[i] if nesterov else M[i]
        if rule == number.SIGN:
            for i in range(w.shape[0]):
                d[i] = np.sign(d[i])
        for i in range(w.shape[0]):
            w[i] -= step * d[i]


@numba.njit(**FREE)
def run(  # type: ignore[no-untyped-def]
    net, at, sigmas, alphas, replicas, theta, x, y, base, weight, loss, rows, buffers, rule, memory, segments, factors,
    settings, lrs, first, losses, done, levels, loss_scaled, samples, ends, gradients, updates,
):  # fmt: skip
    """Train some of R networks from iteration `first` on, in place; `done` (R,) gets the numbers of updates.

    Arrays `theta` (R, P), `memory` (R, 2, P), `lrs` (R, count) begin with the replica, `x`, `y` and `base` may be
    shared by all. Batch b holds `samples[r, ends[b] : ends[b + 1]]`; without `samples` batches are full and `losses`
    (R, count) recorded. Gradients are summed over chunks of `rows` samples. `weight` is that of a sample, 0 for its
    share of the batch. Without `updates`, `losses` are the sums before their weight, and the gradient stays in its
    buffer; with `updates` alone, both are there already.
    """
    H, S, T, g, part, xb, yb, zb = buffers
    full, real = samples.shape[1] == 0, theta.dtype.type
    for r in range(replicas[0], replicas[1]):
        xr, yr = x[r if x.shape[0] > 1 else 0], y[r if y.shape[0] > 1 else 0]
        zr = base[r if base.shape[0] > 1 else 0]
        size, done[r] = xr.shape[0], lrs.shape[1]
        for t in range(lrs.shape[1]):
            divisor, total = 1.0, 0.0
            if not full:
                size = ends[t + 1] - ends[t]
                for q in range(size):
                    k = samples[r, ends[t] + q]
                    for i in range(x.shape[2]):
                        xb[q, i] = xr[k, i]
                    for i in range(y.shape[2]):
                        yb[q, i] = yr[k, i]
                    for i in range(base.shape[2]):
                        zb[q, i] = zr[k, i]
            each = real(1) / real(size) if weight == 0 else weight
            for start in range(0, size if gradients or not updates else 0, rows):
                end = min(size, start + rows)
                xc, yc, zc = (xr, yr, zr) if full else (xb, yb, zb)
                total += backpropagate(
                    net, at, sigmas[r], alphas[r], theta[r], xc[start:end], yc[start:end], zc[start:end], each, loss,
                    H, S, T, part if start > 0 else g, gradients,
                )  # fmt: skip
                if start > 0 and gradients:
                    for i in range(g.shape[0]):
                        g[i] += part[i]
            if full:
                if gradients or not updates:
                    losses[r, t] = total * each if updates else total
                if updates and (not np.isfinite(losses[r, t]) or losses[r, t] <= levels[r]):
                    done[r] = t
                    break
                divisor = losses[r, t] if loss_scaled else 1.0
            if updates:
                update(rule, theta[r], g, memory[r], segments, factors, lrs[r, t], settings, first + t, divisor)
