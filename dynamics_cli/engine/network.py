"""Feed-forward networks of any depth, and diagonal linear ones, in flat arrays: forward, backward, updates.

A network is `h_l = sigma(c_l h_{l-1} W_l + b_l)`, `f = s (z_L - base)`; matrices stand as (columns, rows) of the
network's own: `z = h W`. Activations, losses, updates and products are units that are called by address
(`engine/units.py`, `engine/products.py`). All sums have a fixed order: samples come in chunks whose number depends on
the problem alone, and a chunk has the same bits on whatever thread it is worked on.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from dynamics_cli.compiling import STRICT
from dynamics_cli.engine.products import (
    ONE,
    PIECE,
    ZERO,
    address,
    borrowed,
    call,
    call_number,
    dots,
    product,
    product_from,
)  # fmt: skip

FREE: dict[str, Any] = {**STRICT, "nogil": True}
"""Of kernels that Python's threads call side by side."""
PRODUCT, DOTS, LOSS, UPDATE = range(4)
"""Places of the addresses of units."""


@numba.njit(**PIECE)
def scale_by(z, first, last, c):  # type: ignore[no-untyped-def]
    """Multiply numbers of `z` by `c`."""
    part = z[first:last]
    for k in range(part.shape[0]):
        part[k] *= c


@numba.njit(**PIECE)
def add_bias(theta, b, z, p, n, m):  # type: ignore[no-untyped-def]
    """Add the bias (m,) of `theta` at `b` to each row of `z` (n, m) at `p`."""
    bias = theta[b : b + m]
    for k in range(n):
        row = z[p + k * m : p + k * m + m]
        for j in range(m):
            row[j] += bias[j]


@numba.njit(**PIECE)
def through_layers(net, units, sigma, numbers, q, theta, x, o, y, yo, base, bo, n, weight, H, S, K, B, T, g, wanted):  # type: ignore[no-untyped-def]
    """Fill `g` (P,), where it is wanted, with the gradient of `weight` times the summed losses; return their sum.

    Samples are `n` rows of `x` at `o`, labels of `y` at `yo`; rows of `base` at `bo` are subtracted from the outputs;
    where `scale` is 0, they become the outputs. `H`, `S` hold activations and, after the way forward, slopes and then
    `dL/dz` by layer; `T` is scratch. `sigma` is the address of the activation, 0 for none, `numbers` at `q` its
    numbers. Unless `K` is empty, `sigma` is of order 2, `K` keeps the slopes, and `B` becomes `dL/dh sigma''(z)`;
    `S` ends as `dL/dz` times the multiplier of its layer.
    """
    sizes, at, learns, multipliers, loss_numbers, scale, shifted = net
    L = at.shape[0]
    one, p, before = weight / weight, 0, 0
    zero = one - one
    for layer in range(L):
        rows, m, W, b = sizes[layer], sizes[layer + 1], at[layer, 0], at[layer, 1]
        plain = multipliers[layer] == one
        h = address(x, o) if layer == 0 else address(H, before)
        bias_at = address(theta, b) if plain and b >= 0 else 0
        ahead(units, zero, h, address(theta, W), bias_at, address(H, p), n, rows, m)
        if not plain:
            scale_by(H, p, p + n * m, multipliers[layer])
        if b >= 0 and (m == 1 or not plain):
            add_bias(theta, b, H, p, n, m)
        if layer + 1 < L and sigma != 0:
            call(sigma, (address(H, p), address(S, p), address(B, p), n * m, address(numbers, q)))
        before = p
        p += n * m
    C = sizes[L]
    p -= n * C
    if shifted:
        f = H[p : p + n * C]
        own = base[bo : bo + n * C]
        for k in range(n * C):
            if scale == 0:
                own[k] = f[k]
            f[k] = scale * (f[k] - own[k])
    total = call_number(
        units[LOSS], (address(H, p), address(y, yo), address(S, p), n, C, weight, address(loss_numbers, 0))
    )
    if not wanted:
        return total
    for k in range(p if K.shape[0] else 0):
        K[k] = S[k]
    if scale != one:
        scale_by(S, p, p + n * C, scale)
    lowest = 0
    while lowest < L - 1 and not (learns[lowest, 0] or learns[lowest, 1]):
        lowest += 1
    T[0] = one
    for layer in range(L - 1, lowest - 1, -1):
        rows, m, W, b = sizes[layer], sizes[layer + 1], at[layer, 0], at[layer, 1]
        before = p - n * rows
        if learns[layer, 1]:
            product(units[PRODUCT], zero, address(T, 0), ZERO, ZERO, address(S, p), m, address(g, b), m, ONE, n, m)
        if multipliers[layer] != one:
            scale_by(S, p, p + n * m, multipliers[layer])
        if learns[layer, 0]:
            h = address(x, o) if layer == 0 else address(H, before)
            slope_of_weights(units, zero, h, address(S, p), address(g, W), n, rows, m)
        if layer > lowest:
            if sigma == 0:
                back(units[PRODUCT], units[DOTS], theta, W, rows, m, S, p, n, S, before, T)
            else:
                back(units[PRODUCT], units[DOTS], theta, W, rows, m, S, p, n, T, 1 + rows * m, T)
                towards, slopes = T[1 + rows * m : 1 + rows * m + n * rows], S[before:p]
                for k in range(n * rows):
                    slopes[k] *= towards[k]
                bends = B[before:p]
                for k in range(n * rows if K.shape[0] else 0):
                    bends[k] *= towards[k]
            p = before
    return total


@numba.njit(**PIECE)
def ahead(units, zero, h, W, b, z, n, rows, m):  # type: ignore[no-untyped-def]
    """Set `z` (n, m) to `h W`, plus the bias `b`, unless that is 0, of more than one output; all are addresses."""
    if m == 1:
        dots(units[DOTS], zero, h, W, n, rows, z)
    elif b != 0:
        product_from(units[PRODUCT], zero, h, rows, ONE, W, m, z, m, n, rows, m, b, ZERO)
    else:
        product(units[PRODUCT], zero, h, rows, ONE, W, m, z, m, n, rows, m)


@numba.njit(**PIECE)
def slope_of_weights(units, zero, h, delta, g, n, rows, m):  # type: ignore[no-untyped-def]
    """Set the gradient by a matrix (rows, m) to `h^T delta`, for `delta` (n, m); all are addresses."""
    if m == 1:
        product(units[PRODUCT], zero, delta, ZERO, ONE, h, rows, g, rows, ONE, n, rows)
    else:
        product(units[PRODUCT], zero, h, ONE, rows, delta, m, g, m, rows, n, m)


@numba.njit(**PIECE)
def back(unit, dot_unit, theta, W, rows, m, S, p, n, out, to, T):  # type: ignore[no-untyped-def]
    """Set `out` (n, rows), at `to`, to `delta W^T`: `delta` (n, m) of `S` at `p`, W (rows, m); `T[1:]` is scratch."""
    zero = S.dtype.type(0)
    if m == 1:
        product(unit, zero, address(S, p), ONE, ONE, address(theta, W), rows, address(out, to), rows, n, ONE, rows)
    elif n < 4:
        for k in range(n):
            dots(dot_unit, zero, address(theta, W), address(S, p + k * m), rows, m, address(out, to + k * rows))
    else:
        for j in range(m):
            column = T[1 + j * rows : 1 + j * rows + rows]
            for i in range(rows):
                column[i] = theta[W + i * m + j]
        product(unit, zero, address(S, p), m, ONE, address(T, 1), rows, address(out, to), rows, n, m, rows)


@numba.njit(**PIECE)
def diagonal(net, units, depth, theta, x, o, y, yo, base, bo, n, weight, H, S, T, g, wanted):  # type: ignore[no-untyped-def]
    """Do as `through_layers` for `f = x (u^D - v^D)`, `theta = (u, v)`."""
    sizes, _, _, _, loss_numbers, scale, shifted = net
    d, one = sizes[0], weight / weight
    zero = one - one
    beta, u, v = T[:d], T[d : 2 * d], T[2 * d : 3 * d]  # u^(D-1), v^(D-1)
    for i in range(d):
        u[i], v[i] = (theta[i], theta[d + i]) if depth > 1 else (one, one)
    for _ in range(depth - 2):
        for i in range(d):
            u[i] *= theta[i]
            v[i] *= theta[d + i]
    for i in range(d):
        beta[i] = u[i] * theta[i] - v[i] * theta[d + i]
    dots(units[DOTS], zero, address(x, o), address(T, 0), n, d, address(H, 0))
    if shifted:
        for k in range(n):
            if scale == 0:
                base[bo + k] = H[k]
            H[k] = scale * (H[k] - base[bo + k])
    total = call_number(
        units[LOSS], (address(H, 0), address(y, yo), address(S, 0), n, 1, weight, address(loss_numbers, 0))
    )
    if wanted:
        product(units[PRODUCT], zero, address(S, 0), ZERO, ONE, address(x, o), d, address(T, 0), d, ONE, n, d)
        factor = scale * u.dtype.type(depth)
        for i in range(d):
            g[i] = factor * u[i] * beta[i]
            g[d + i] = -factor * v[i] * beta[i]
    return total


@numba.njit(**PIECE)
def one_chunk(  # type: ignore[no-untyped-def]
    net, units, sigma, numbers, q, depth, theta, x, o, y, yo, base, bo, n, weight, H, S, T, g, wanted
):
    """Do as `through_layers`, or as `diagonal` where there is a `depth`: of the two, numba compiles that alone."""
    if depth is not None:
        return diagonal(net, units, depth, theta, x, o, y, yo, base, bo, n, weight, H, S, T, g, wanted)
    return through_layers(
        net, units, sigma, numbers, q, theta, x, o, y, yo, base, bo, n, weight, H, S, S[:0], S, T, g, wanted
    )


@numba.njit(**FREE)
def run(  # type: ignore[no-untyped-def]
    net, units, sigmas, numbers, depth, replicas, theta, x, y, base, weight, rows, buffers, memory, segments, factors,
    update_numbers, lrs, first, losses, done, levels, samples, ends, gradients, updates,
):  # fmt: skip
    """Train some of R networks from iteration `first` on, in place; `done` (R,) gets the numbers of updates.

    Arrays `theta` (R, P), `memory` (R, slots P), `lrs` (R, count) begin with the replica, `x`, `y` and `base` (Q, n,
    ...) may be shared by all. Batch b holds `samples[r, ends[b] : ends[b + 1]]`; without `samples` batches are full
    and `losses` (R, count) recorded. Gradients are summed over chunks of `rows` samples. `weight` is that of a sample,
    0 for its share of the batch. Without `updates`, `losses` are the sums before their weight, and the gradient stays
    in its buffer; with `updates` alone, both are there already. `depth` is that of a diagonal network, None of others.
    """
    H, S, T, g, part, xb, yb, zb = buffers
    H, S, T, g, part = borrowed(H), borrowed(S), borrowed(T), borrowed(g), borrowed(part)
    xb, yb, zb, theta, memory = borrowed(xb), borrowed(yb), borrowed(zb), borrowed(theta), borrowed(memory)
    x, y, base, numbers = borrowed(x), borrowed(y), borrowed(base), borrowed(numbers)
    sizes, at, learns, multipliers, loss_numbers, scale, shifted = net
    net = (
        borrowed(sizes), borrowed(at), borrowed(learns), borrowed(multipliers), borrowed(loss_numbers), scale, shifted
    )  # fmt: skip
    full, real = samples.shape[1] == 0, theta.dtype.type
    d, c, C = x.shape[2], y.shape[2], base.shape[2]
    flat_segments = segments.reshape(-1)
    X, Y, Z = x.reshape(-1), y.reshape(-1), base.reshape(-1)
    xs, ys, zs = (X, Y, Z) if full else (xb, yb, zb)
    per_network = numbers.shape[0] // max(1, sigmas.shape[0])
    for r in range(replicas[0], replicas[1]):
        n = x.shape[1]
        xo, yo = (r if x.shape[0] > 1 else 0) * n * d, (r if y.shape[0] > 1 else 0) * n * c
        zo = (r if base.shape[0] > 1 else 0) * n * C
        size, done[r] = n, lrs.shape[1]
        own, kept = theta[r], memory[r].reshape(-1)
        for t in range(lrs.shape[1]):
            total = 0.0
            if not full:
                size = ends[t + 1] - ends[t]
                for q in range(size):
                    k = samples[r, ends[t] + q]
                    pick(xb, q * d, X, xo + k * d, d)
                    pick(yb, q * c, Y, yo + k * c, c)
                    pick(zb, q * C, Z, zo + k * C, C)
            each = real(1) / real(size) if weight == 0 else weight
            for start in range(0, size if gradients or not updates else 0, rows):
                count = min(size, start + rows) - start
                a, b, e = (xo, yo, zo) if full else (0, 0, 0)
                if start == 0:
                    total += one_chunk(
                        net, units, sigmas[r], numbers, r * per_network, depth, own, xs, a, ys, b, zs, e, count, each,
                        H, S, T, g, gradients,
                    )  # fmt: skip
                else:
                    total += one_chunk(
                        net, units, sigmas[r], numbers, r * per_network, depth, own, xs, a + start * d, ys,
                        b + start * c, zs, e + start * C, count, each, H, S, T, part, gradients,
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
            if updates:
                call(
                    units[UPDATE],
                    (
                        address(own, 0), address(g, 0), address(kept, 0), own.shape[0], address(flat_segments, 0),
                        factors.shape[0], address(factors, 0), lrs[r, t], first + t, losses[r, t] if full else 0.0,
                        address(update_numbers, 0),
                    ),
                )  # fmt: skip


@numba.njit(**PIECE)
def pick(to, at, source, place, count):  # type: ignore[no-untyped-def]
    """Copy numbers."""
    left, right = to[at : at + count], source[place : place + count]
    for i in range(count):
        left[i] = right[i]
