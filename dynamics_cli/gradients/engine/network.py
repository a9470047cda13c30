"""Forward, backward and update of networks of layers and diagonal linear networks, as units.

A network is `h_l = sigma(z_l)`, `z_l = c_l h_{l-1} W_l + b_l`, `f = s (z_L - base)`; matrices stand
as (columns, rows) of the network's own: `z = h W`. A skip connection around a layer adds `z_{l-1}`
to `z_l`. One update of `train`, with the records (`records.py`) that each part reads:

    Task ----> loss_and_gradient    of the samples of the batch, or of all
      |            |
    Network -> forward ----------> forward_layer    z_l = c_l h_{l-1} W_l + b_l
      |            |               activation       h_l = sigma(z_l), sigma'(z_l)
      |        output_loss --------> loss           L, dL/df
      |            |
      |        backward ---------> weight_gradient  dL/dW_l, dL/db_l
      |            |               backward_layer   dL/dh_{l-1} = dL/dz_l W_l^T, times sigma'
      v            |
    Task ----> apply_update -----> update           weights and memory of the optimizer
      |
    Task ----> watch                                measures of the new state (`gradients/watch.py`)

The right column holds separate units, called by the addresses in the records: activations, losses
and updates are made from formulas (`formulas/units.py`), products by `products.py`. All sums have a
fixed order: samples come in chunks whose number depends on the problem alone, and a chunk has the
same bits on whatever thread it is worked on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics_cli.formulas.native import (
    Address,
    Floats,
    Real,
    Reals,
    call,
    call_number,
    cast_like,
    offset,
    piece,
    unit,
)
from dynamics_cli.gradients.engine.products import AT_ONCE, lanes_of, row_product, some_dots
from dynamics_cli.gradients.engine.records import Layer, Network, Task

_CACHED = 2**12
"""Numbers of samples that stay in the fastest cache."""

# -- a layer


@unit
def forward_layer(
    net: Network, layer: Layer, theta: Reals, h: Reals, z: Reals, n: int, accumulate: int
) -> None:
    """Set `z` (n, m) to `h W + b`, of `h` (n, d) and weights `theta`.

    With `accumulate`, set it to `h W + z + b`.
    """
    d = layer.inputs
    m = layer.outputs
    W = offset(theta, layer.weight)
    b = offset(theta, layer.bias)
    has_bias = layer.bias >= 0
    from_bias = has_bias and m > 1 and not accumulate
    if from_bias and d == 1 and m >= lanes_of(theta):
        for k in range(n):
            row_product(offset(h, k), 1, W, offset(z, k * m), 1, m, b, True)
        return
    if from_bias:
        for k in range(n):
            for j in range(m):
                z[k * m + j] = b[j]
    if m > 1:
        call(net.product, (h, d, 1, W, z, n, d, m, int(from_bias or accumulate != 0)))
    elif accumulate:
        product = offset(net.scratch, 1)
        call(net.dots, (h, W, n, d, product))
        for k in range(n):
            z[k] += product[k]
    else:
        call(net.dots, (h, W, n, d, z))
    if has_bias and not from_bias:
        for k in range(n):
            for j in range(m):
                z[k * m + j] += b[j]


@unit
def weight_gradient(
    net: Network, layer: Layer, h: Reals, delta: Reals, g: Reals, n: int, accumulate: int
) -> None:
    """Set in `g` (P,) the gradients by W and b from `h` (n, d) and `delta` (n, m).

    With `accumulate`, add to the gradient by W alone.
    """
    d = layer.inputs
    m = layer.outputs
    dW = offset(g, layer.weight)
    db = offset(g, layer.bias)
    unity = net.scratch
    if not accumulate:
        unity[0] = 1
        if layer.bias >= 0:
            call(net.product, (unity, 0, 0, delta, db, 1, n, m, 0))
    if m == 1:
        call(net.product, (delta, 0, 1, h, dW, 1, n, d, accumulate))
    else:
        call(net.product, (h, 1, d, delta, dW, d, n, m, accumulate))


@unit
def backward_layer(
    net: Network, layer: Layer, theta: Reals, delta: Reals, n: int, dh: Reals
) -> None:
    """Set `dh` (n, d) to `delta W^T`, of `delta` (n, m)."""
    d = layer.inputs
    m = layer.outputs
    W = offset(theta, layer.weight)
    if m == 1:
        call(net.product, (delta, 1, 1, W, dh, n, 1, d, 0))
    elif n < 4:
        for k in range(n):
            call(net.dots, (W, offset(delta, k * m), d, m, offset(dh, k * d)))
    else:
        transposed = offset(net.scratch, 1)
        for j in range(m):
            for i in range(d):
                transposed[j * d + i] = W[i * m + j]
        call(net.product, (delta, m, 1, transposed, dh, n, m, d, 0))


# -- a network


@piece
def forward(net: Network, sigma: Address, numbers: Floats, theta: Reals, x: Reals, n: int) -> int:
    """Fill activations and their derivatives; return where the outputs begin among them."""
    h = x
    at = 0
    end = 0
    for k in range(net.layer_count):
        layer = offset(net.layers, k)
        at = end
        z = offset(net.activations, end)
        count = n * layer.outputs
        call(net.forward_layer, (net, layer, theta, h, z, n, layer.skip))
        end += count
        if k + 1 < net.layer_count:
            if offset(net.layers, k + 1).skip:  # before activations take the place of `z`
                above = offset(net.activations, end)
                for i in range(count):
                    above[i] = z[i]
            if sigma != 0:
                call(
                    sigma,
                    (
                        z,
                        offset(net.derivatives, at),
                        offset(net.second_derivatives, at),
                        count,
                        numbers,
                    ),
                )
        h = z
    return at


@piece
def output_loss(
    net: Network,
    f: Reals,
    delta: Reals,
    y: Reals,
    base: Reals,
    n: int,
    C: int,
    weight: Real,
    summed: float,
) -> Any:
    """Centre and scale the outputs `f` (n, C), fill `delta` with `weight dl/df`.

    Return `summed`, the losses of samples before, plus theirs.
    """
    s = cast_like(net.output_scale, weight)
    for k in range(n * C):
        if s == 0:
            base[k] = f[k]
        f[k] = s * (f[k] - base[k])
    return call_number(net.loss, (f, y, f, delta, n, C, weight, net.loss_numbers, summed))


@piece
def backward_activation(
    net: Network, layer: Layer, sigma: Address, theta: Reals, delta: Reals, n: int, at: int
) -> None:
    """Set the deltas of the layer below, at `at`, to `delta W^T sigma'`.

    A skip connection adds `delta`.
    """
    d = layer.inputs
    below = offset(net.deltas, at)
    second = offset(net.second_derivatives, at)
    if net.keeps_derivatives:
        derivatives = offset(net.derivatives, at)
        call(net.backward_layer, (net, layer, theta, delta, n, below))
        for k in range(n * d):
            second[k] *= below[k]
            below[k] *= derivatives[k]
    elif sigma == 0:
        call(net.backward_layer, (net, layer, theta, delta, n, below))
    elif layer.outputs == 1:  # in one pass: `below` is sigma'
        W = offset(theta, layer.weight)
        for k in range(n):
            row = offset(below, k * d)
            slope = delta[k]
            for i in range(d):
                row[i] *= slope * W[i]
    else:
        dh = offset(net.scratch, 1 + d * layer.outputs)
        call(net.backward_layer, (net, layer, theta, delta, n, dh))
        for k in range(n * d):
            below[k] *= dh[k]
    if layer.skip:
        for k in range(n * d):
            below[k] += delta[k]


@piece
def backward(
    net: Network, sigma: Address, theta: Reals, x: Reals, n: int, at: int, g: Reals
) -> None:
    """Fill `g` (P,) from the deltas of the outputs, which begin at `at`."""
    for k in range(net.layer_count - 1, net.lowest - 1, -1):
        layer = offset(net.layers, k)
        delta = offset(net.deltas, at)
        at -= n * layer.inputs
        call(
            net.weight_gradient,
            (net, layer, offset(net.activations, at) if k > 0 else x, delta, g, n, 0),
        )
        if k > net.lowest:
            backward_activation(net, layer, sigma, theta, delta, n, at)


@unit
def loss_and_gradient(
    net: Network,
    sigma: Address,
    numbers: Floats,
    theta: Reals,
    x: Reals,
    y: Reals,
    base: Reals,
    n: int,
    weight: Real,
    g: Reals,
    wanted: int,
) -> float:
    """Fill `g` (P,), where it is wanted, with the gradient of `weight` times the summed losses.

    Return their sum.

    `sigma` is the activation, 0 for the identity; where `keeps_derivatives`, of order 2, and `dL/dh
    sigma''(z)` is kept in `second_derivatives`.
    """
    at = forward(net, sigma, numbers, theta, x, n)
    C = offset(net.layers, net.layer_count - 1).outputs
    delta = offset(net.deltas, at)
    total = output_loss(net, offset(net.activations, at), delta, y, base, n, C, weight, 0.0)
    if wanted:
        s = cast_like(net.output_scale, weight)
        if s != 1:
            for k in range(n * C):
                delta[k] *= s
        backward(net, sigma, theta, x, n, at, g)
    return float(total)


@unit
def diagonal_loss_and_gradient(
    net: Network,
    sigma: Address,
    numbers: Floats,
    theta: Reals,
    x: Reals,
    y: Reals,
    base: Reals,
    n: int,
    weight: Real,
    g: Reals,
    wanted: int,
) -> float:
    """Do as `loss_and_gradient` for `f = x (u^D - v^D)`, `theta = (u, v)`."""
    d = net.columns
    depth = net.depth
    f = net.activations
    delta = net.deltas
    beta = net.scratch
    # u^(D-1), v^(D-1)
    u = offset(beta, d)
    v = offset(beta, 2 * d)
    for i in range(d):
        u[i] = cast_like(1, weight)
        v[i] = cast_like(1, weight)
    for _ in range(depth - 1):
        for i in range(d):
            u[i] *= theta[i]
            v[i] *= theta[d + i]
    for i in range(d):
        beta[i] = u[i] * theta[i] - v[i] * theta[d + i]
    # some rows at a time: the gradient finds them in the fastest cache
    total = 0.0
    step = AT_ONCE * max(1, _CACHED // (AT_ONCE * d))
    for first in range(0, n, step):
        last = min(first + step, n)
        some_dots(x, beta, n, d, f, first, last)
        rows = offset(x, first * d)
        slopes = offset(delta, first)
        total = output_loss(
            net,
            offset(f, first),
            slopes,
            offset(y, first),
            offset(base, first),
            last - first,
            1,
            weight,
            total,
        )
        if wanted and d >= lanes_of(x):
            row_product(slopes, 1, rows, g, last - first, d, g, first > 0)
        elif wanted:
            call(net.product, (slopes, 0, 1, rows, g, 1, last - first, d, int(first > 0)))
    if wanted:
        factor = cast_like(net.output_scale, weight) * cast_like(depth, weight)
        for i in range(d):
            moved = g[i]
            g[i] = factor * u[i] * moved
            g[d + i] = -factor * v[i] * moved
    return float(total)


# -- training


@piece
def apply_update(
    task: Task, theta: Reals, memory: Reals, rate: float, iteration: int, loss: float
) -> None:
    """Update the weights of a replica by `gradient`."""
    given = (
        theta,
        task.gradient,
        memory,
        task.weights,
        task.segments,
        task.segment_count,
        task.rate_factors,
        rate,
        iteration,
        loss,
        task.update_numbers,
    )
    call(task.update, given)


@piece
def train_replica(task: Task, r: int) -> None:
    """Do the updates of replica r, in place, until it halts."""
    x = offset(task.x, r * task.x_step)
    y = offset(task.y, r * task.y_step)
    base = offset(task.base, r * task.base_step)
    theta = offset(task.theta, r * task.weights)
    memory = offset(task.memory, r * task.weights * task.slots)
    rates = offset(task.rates, r * task.count)
    losses = offset(task.losses, r * task.count)
    numbers = offset(task.activation_numbers, r * task.activation_numbers_step)
    sigma = task.activation_units[r]
    level = task.levels[r]
    weight = cast_like(task.sample_weight, theta[0])
    task.done[r] = task.count
    watched = 0
    for t in range(task.count):
        net = task.network
        first = 0
        size = task.samples
        loss = 0.0
        if not task.full_batch:
            first = task.batch_ends[t]
            size = task.batch_ends[t + 1] - task.batch_ends[t]
        each = weight / cast_like(size, weight) if task.mean else weight
        given = (
            net,
            sigma,
            numbers,
            theta,
            offset(x, first * net.columns),
            offset(y, first * task.labels),
            offset(base, first * task.outputs),
            size,
            each,
            task.gradient,
            task.gradients,
        )
        total = call_number(net.loss_and_gradient, given)
        if task.full_batch:
            loss = losses[t] = total * each
            if not np.isfinite(loss) or loss <= level:
                task.done[r] = t
                break
        apply_update(task, theta, memory, rates[t], task.iteration + t, loss)
        if task.watch != 0 and task.due[watched] == task.iteration + t + 1:
            watched += 1
            if call_number(task.watch, (task.watching, theta)) != 0:
                task.done[r] = t + 1
                break


@unit
def train_updates(task: Task) -> None:
    """Train some of R networks; see the fields of `Task`."""
    for r in range(task.first_replica, task.last_replica):
        train_replica(task, r)
