"""Feed-forward networks of any depth, and diagonal linear networks: forward, backward, updates, as units of pointers.

A network is `h_l = sigma(c_l h_{l-1} W_l + b_l)`, `f = s (z_L - base)`; matrices stand as (columns, rows) of the
network's own: `z = h W`. Activations, losses, updates and products are units too (`engine/units.py`,
`engine/products.py`); their addresses stand in the records that `engine/layout.py` writes. All sums have a fixed
order: samples come in chunks whose number depends on the problem alone, and a chunk has the same bits on whatever
thread it is worked on.
"""

from __future__ import annotations

import numpy as np

from dynamics_cli.engine.native import call, call_number, like, moved, numbers_at, unit
from dynamics_cli.engine.subnormals import flush, put_back

(
    NETWORK, PRODUCT, DOTS, AHEAD, SLOPE, BACK, LOSS, LOSS_NUMBERS, DEPTH, LAYERS, LOWEST, SHIFTED, FACTORS,
    ACTIVATIONS, DELTAS, SLOPES, BENDS, SCRATCH, GRADIENT, PART, BATCH_X, BATCH_Y, BATCH_BASE, SIZES,
) = range(24)  # fmt: skip
"""Places in the record of a network: addresses of units, sizes, addresses of arrays, then the layers."""
EACH = 6
"""Numbers of a layer there: inputs, outputs, where weights and biases (-1: none) stand, which of them are trained."""
(
    FIRST, LAST, X, Y, BASE, SAMPLES_COUNT, X_STEP, Y_STEP, BASE_STEP, CHUNK, COUNT, RATES, ITERATION, LOSSES, DONE,
    LEVELS, SAMPLES, BATCHED, ENDS, MEAN, GRADIENTS, UPDATES,
    THETA, MEMORY, SLOTS, WEIGHTS, X_COLUMNS, Y_COLUMNS, OUTPUTS, SIGMAS, NUMBERS, SIGMA_NUMBERS, UPDATE, SEGMENTS,
    SEGMENTS_COUNT, RATE_FACTORS, UPDATE_NUMBERS,
) = range(37)  # fmt: skip
"""Places in the record of a task; those before `THETA` differ from call to call."""


@unit("void", "int64* int64 real* real* real* int64 int64")
def ahead(net, layer, theta, h, z, n, adds):  # type: ignore[no-untyped-def]
    """Set `z` (n, m) to `c h W + b`, of weights `theta` and the multiplier c of a layer; `adds`: `c (h W + z) + b`."""
    own = moved(net, SIZES + EACH * layer)
    rows, m, W, b = own[0], own[1], moved(theta, own[2]), moved(theta, own[3])
    factor = numbers_at(net[FACTORS], theta[0])[layer]
    biased = own[3] >= 0
    joined = biased and m > 1 and factor == 1 and not adds
    if m == 1:
        found = moved(numbers_at(net[SCRATCH], theta[0]), 1) if adds else z
        call(net[DOTS], (h, W, n, rows, found))
        for k in range(n if adds else 0):
            z[k] += found[k]
    else:
        begins = joined or adds != 0
        call(net[PRODUCT], (h, rows, 1, W, m, z, m, n, rows, m, b if joined else z, m if adds else 0, begins))
    for k in range(n if (biased or factor != 1) and not joined else 0):
        for j in range(m):
            z[k * m + j] = factor * z[k * m + j] + (b[j] if biased else like(0, factor))


@unit("void", "int64* int64 real* real* real* int64 int64")
def slope(net, layer, h, delta, g, n, adds):  # type: ignore[no-untyped-def]
    """Set in `g` (P,) the slopes by weights and biases of a layer from `delta` (n, m), which its multiplier multiplies.

    With `adds`, add to those by weights: `delta` is multiplied already.
    """
    own = moved(net, SIZES + EACH * layer)
    rows, m, dW, db = own[0], own[1], moved(g, own[2]), moved(g, own[3])
    factor, ones = numbers_at(net[FACTORS], delta[0])[layer], numbers_at(net[SCRATCH], delta[0])
    if not adds:
        ones[0] = 1
        if own[5]:
            call(net[PRODUCT], (ones, 0, 0, delta, m, db, m, 1, n, m, db, 0, 0))
        for k in range(n * m if factor != 1 else 0):
            delta[k] *= factor
    if own[4] and m == 1:
        call(net[PRODUCT], (delta, 0, 1, h, rows, dW, rows, 1, n, rows, dW, rows, adds))
    elif own[4]:
        call(net[PRODUCT], (h, 1, rows, delta, m, dW, m, rows, n, m, dW, m, adds))


@unit("void", "int64* int64 real* real* int64 real*")
def back(net, layer, theta, delta, n, out):  # type: ignore[no-untyped-def]
    """Set `out` (n, rows) to `delta W^T`, of `delta` (n, m) and the weights W (rows, m) of a layer."""
    own = moved(net, SIZES + EACH * layer)
    rows, m, W = own[0], own[1], moved(theta, own[2])
    if m == 1:
        call(net[PRODUCT], (delta, 1, 1, W, rows, out, rows, n, 1, rows, out, 0, 0))
    elif n < 4:
        for k in range(n):
            call(net[DOTS], (W, moved(delta, k * m), rows, m, moved(out, k * rows)))
    else:
        turned = moved(numbers_at(net[SCRATCH], W[0]), 1)
        for j in range(m):
            for i in range(rows):
                turned[j * rows + i] = W[i * m + j]
        call(net[PRODUCT], (delta, m, 1, turned, rows, out, rows, n, m, rows, out, 0, 0))


_ARGUMENTS = "int64* int64 float64* real* real* real* real* int64 real real* int64"


@unit("float64", _ARGUMENTS)
def through_layers(net, sigma, numbers, theta, x, y, base, n, weight, g, wanted):  # type: ignore[no-untyped-def]
    """Fill `g` (P,), where it is wanted, with the gradient of `weight` times the summed losses; return their sum.

    `base` is subtracted from the outputs; where the scale is 0, they become it. `sigma` is the address of the
    activation, 0 for none. Its slopes become `dL/dz` by layer, times the multiplier of the layer, unless they have a
    place of their own: then sigma is of order 2, and `dL/dh sigma''(z)` is kept as well.
    """
    L, H, S = net[LAYERS], numbers_at(net[ACTIVATIONS], weight), numbers_at(net[DELTAS], weight)
    slopes, bends = numbers_at(net[SLOPES], weight), numbers_at(net[BENDS], weight)
    h, p, N, count = x, 0, 0, 0
    for layer in range(L):
        p, z, count = N, moved(H, N), n * net[SIZES + EACH * layer + 1]
        call(net[AHEAD], (net, layer, theta, h, z, n, 0))
        if layer + 1 < L and sigma != 0:
            call(sigma, (z, moved(slopes, p), moved(bends, p), count, numbers))
        h = z
        N += count
    delta, scale = moved(S, p), numbers_at(net[FACTORS], weight)[L]
    for k in range(count if net[SHIFTED] else 0):
        if scale == 0:
            base[k] = h[k]
        h[k] = scale * (h[k] - base[k])
    C = net[SIZES + EACH * (L - 1) + 1]
    total = call_number(net[LOSS], (h, y, delta, n, C, weight, numbers_at(net[LOSS_NUMBERS], 0.0)))
    if not wanted:
        return total
    for k in range(count if scale != 1 else 0):
        delta[k] *= scale
    for layer in range(L - 1, net[LOWEST] - 1, -1):
        rows, m = net[SIZES + EACH * layer], net[SIZES + EACH * layer + 1]
        delta = moved(S, p)
        count = n * rows
        p -= count
        call(net[SLOPE], (net, layer, moved(H, p) if layer > 0 else x, delta, g, n, 0))
        if layer > net[LOWEST]:
            below, bent, apart = moved(S, p), moved(bends, p), net[SLOPES] != net[DELTAS]
            if m == 1 and sigma != 0 and not apart:  # in one go
                W = moved(theta, net[SIZES + EACH * layer + 2])
                for k in range(n):
                    own, towards = moved(below, k * rows), delta[k]
                    for i in range(rows):
                        own[i] *= towards * W[i]
                continue
            towards = below if apart or sigma == 0 else moved(numbers_at(net[SCRATCH], weight), 1 + rows * m)
            times = moved(slopes, p) if apart else towards
            call(net[BACK], (net, layer, theta, delta, n, towards))
            for k in range(count if apart else 0):
                bent[k] *= towards[k]
            for k in range(count if sigma != 0 else 0):
                below[k] *= times[k]
    return total


@unit("float64", _ARGUMENTS)
def diagonal(net, sigma, numbers, theta, x, y, base, n, weight, g, wanted):  # type: ignore[no-untyped-def]
    """Do as `through_layers` for `f = x (u^D - v^D)`, `theta = (u, v)`."""
    d, depth, scale = net[SIZES], net[DEPTH], numbers_at(net[FACTORS], weight)[0]
    f, delta, beta = (
        numbers_at(net[ACTIVATIONS], weight),
        numbers_at(net[DELTAS], weight),
        numbers_at(net[SCRATCH], weight),
    )
    u, v = moved(beta, d), moved(beta, 2 * d)  # u^(D-1), v^(D-1)
    for i in range(d):
        u[i], v[i] = (theta[i], theta[d + i]) if depth > 1 else (like(1, weight), like(1, weight))
    for _ in range(depth - 2):
        for i in range(d):
            u[i] *= theta[i]
            v[i] *= theta[d + i]
    for i in range(d):
        beta[i] = u[i] * theta[i] - v[i] * theta[d + i]
    call(net[DOTS], (x, beta, n, d, f))
    for k in range(n if net[SHIFTED] else 0):
        if scale == 0:
            base[k] = f[k]
        f[k] = scale * (f[k] - base[k])
    total = call_number(net[LOSS], (f, y, delta, n, 1, weight, numbers_at(net[LOSS_NUMBERS], 0.0)))
    if wanted:
        call(net[PRODUCT], (delta, 0, 1, x, d, beta, d, 1, n, d, beta, 0, 0))
        factor = scale * like(depth, weight)
        for i in range(d):
            g[i] = factor * u[i] * beta[i]
            g[d + i] = -factor * v[i] * beta[i]
    return total


@unit("void", "int64* int64* real")
def run(net, task, weight):  # type: ignore[no-untyped-def]
    """Train some of R networks, in place; `DONE` (R,) gets the numbers of updates.

    Arrays of weights (R, P), memory (R, slots P), rates and losses (R, count) begin with the replica; inputs, labels
    and `BASE` are shared where their steps from replica to replica are 0. Batch b holds `SAMPLES[r, ENDS[b] :
    ENDS[b + 1]]`; without samples batches are full and losses recorded. Gradients are summed over chunks. `weight` is
    that of a sample, with `MEAN` of the mean over its batch. Without `UPDATES`, losses are the sums before their
    weight, and the gradient stays in its buffer; with `UPDATES` alone, both are there already.
    """
    former = flush()
    P, d, c, C, n = task[WEIGHTS], task[X_COLUMNS], task[Y_COLUMNS], task[OUTPUTS], task[SAMPLES_COUNT]
    g, part = numbers_at(net[GRADIENT], weight), numbers_at(net[PART], weight)
    samples, ends, done = numbers_at(task[SAMPLES], n), numbers_at(task[ENDS], n), numbers_at(task[DONE], n)
    full, updates, measured = task[SAMPLES] == 0, task[UPDATES] != 0, task[GRADIENTS] != 0 or task[UPDATES] == 0
    for r in range(task[FIRST], task[LAST]):
        x = moved(numbers_at(task[X], weight), r * task[X_STEP])
        y = moved(numbers_at(task[Y], weight), r * task[Y_STEP])
        base = moved(numbers_at(task[BASE], weight), r * task[BASE_STEP])
        theta = moved(numbers_at(task[THETA], weight), r * P)
        memory = moved(numbers_at(task[MEMORY], weight), r * P * task[SLOTS])
        rates = moved(numbers_at(task[RATES], 0.0), r * task[COUNT])
        losses = moved(numbers_at(task[LOSSES], 0.0), r * task[COUNT])
        numbers = moved(numbers_at(task[SIGMA_NUMBERS], 0.0), r * task[NUMBERS])
        sigma, level, size = numbers_at(task[SIGMAS], n)[r], numbers_at(task[LEVELS], 0.0)[r], n
        xs, ys, bases = x, y, base
        done[r] = task[COUNT]
        for t in range(task[COUNT]):
            if not full:
                first = ends[t]
                size = ends[t + 1] - first
                xs, ys, bases = (
                    numbers_at(net[BATCH_X], weight), numbers_at(net[BATCH_Y], weight),
                    numbers_at(net[BATCH_BASE], weight),
                )  # fmt: skip
                for q in range(size):
                    k = samples[r * task[BATCHED] + first + q]
                    for i in range(d):
                        xs[q * d + i] = x[k * d + i]
                    for i in range(c):
                        ys[q * c + i] = y[k * c + i]
                    for i in range(C):
                        bases[q * C + i] = base[k * C + i]
            each, total = weight / like(size, weight) if task[MEAN] else weight, 0.0
            for start in range(0, size if measured else 0, task[CHUNK]):
                count = task[CHUNK] if start + task[CHUNK] < size else size - start
                total += call_number(
                    net[NETWORK],
                    (
                        net, sigma, numbers, theta, moved(xs, start * d), moved(ys, start * c),
                        moved(bases, start * C), count, each, part if start else g, task[GRADIENTS],
                    ),
                )  # fmt: skip
                for i in range(P if start and task[GRADIENTS] else 0):
                    g[i] += part[i]
            if full and measured:
                losses[t] = total * each if updates else total
            if full and updates and (not np.isfinite(losses[t]) or losses[t] <= level):
                done[r] = t
                break
            if updates:
                call(
                    task[UPDATE],
                    (
                        theta, g, memory, P, task[SEGMENTS], task[SEGMENTS_COUNT], task[RATE_FACTORS], rates[t],
                        task[ITERATION] + t, losses[t] if full else 0.0, task[UPDATE_NUMBERS],
                    ),
                )  # fmt: skip
    put_back(former)
