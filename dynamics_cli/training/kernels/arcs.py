"""Two-layer neurons driven by given derivatives of the loss: solved exactly between changes of their activations.

Neurons of a two-layer network feel each other only through the weighted loss derivatives `f_k(t)` of the samples. Where
these are given as polynomials of time, every neuron is on its own: `dw/dt = a D(t)`, `da/dt = <D(t), w>` with
`D = sum_k d_k(t) x_k`, a linear equation in (w, a) until a pre-activation `z_k = <w, x_k>` changes its sign. With

    D(t) = sum_q t^q D_q,   w(t) = w + sum_q c_q(t) D_q,   dc_q/dt = t^q a,   da/dt = sum_q t^q <D_q, w(t)>,

it has three unknowns c_q besides a, of which the Taylor series are summed; `z_k(t) = z_k + sum_q c_q(t) <D_q, x_k>` is
a polynomial then, and its first sign change is found as its root. Only `z` and the Gram matrix G of the inputs enter;
`w = w_0 + sum_k C_k x_k` is kept by its coefficients C. The map from (w, a) to (w(t), a(t)) conserves `a^2 - ||w||^2`
(Boursier et al. 2022, Lemma 1) and knows no scale, so that weights of 1e-20 are as good as any.

Time runs from 0 to 1 within a step, and derivatives are multiplied by the length of the step.
"""

from __future__ import annotations

import numba
import numpy as np

from dynamics_cli.compiling import INLINE, PIECE, STRICT
from dynamics_cli.training.kernels.boundaries import BOUNDARY, DRIFT, HEARD, OFF, ON, PRODUCTS, SLIDING, settle
from dynamics_cli.training.kernels.drift import TERMS, drift

ORDER = 12
"""Order of the Taylor series."""
POLYNOMIALS = 15
"""Rows of coefficients that an arc needs."""
REACH = 0.4
"""Length of an arc times `||D||`: the sign of z is looked at once an arc."""
EVENTS_PER_SAMPLE = 50
"""Activation changes of one neuron in one step after which further changes are not located."""
_NONE, _CROSSING, _RELEASED_OFF, _RELEASED_ON, _OUTPUT_SIGN = -1, 0, 1, 2, 3


@numba.njit(**PIECE)
def at(coefficients, s):  # type: ignore[no-untyped-def]
    """Return the value of a polynomial at `s`, lowest coefficient first."""
    value = 0.0
    for i in range(coefficients.shape[0] - 1, -1, -1):
        value = value * s + coefficients[i]
    return value


@numba.njit(**PIECE)
def root(p, s, sign):  # type: ignore[no-untyped-def]
    """Return where in [0, s] the polynomial, of this sign at first and of the other at `s`, changes it."""
    low, high = 0.0, s
    if p[0] * sign <= 0.0:
        if p[1] * sign <= 0.0:
            return 0.0
        low = s  # it starts at 0 and leaves to the right side
        for _ in range(60):
            low *= 0.5
            if at(p, low) * sign > 0.0:
                break
            high = low
    for _ in range(60):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if at(p, middle) * sign < 0.0:
            high = middle
        else:
            low = middle
    return high


@numba.njit(**PIECE)
def dot(u, v):  # type: ignore[no-untyped-def]
    """Return `<u, v>`."""
    s = 0.0
    for k in range(u.shape[0]):
        s += u[k] * v[k]
    return s


@numba.njit(**PIECE)
def norm(w_0_squared, C, z_0, z):  # type: ignore[no-untyped-def]
    """Return `||w||` of `w = w_0 + sum_k C_k x_k`; `z_0` and `z` are the products of w_0 and w with the inputs."""
    return np.sqrt(max(w_0_squared + dot(C, z_0) + dot(C, z), 0.0))


@numba.njit(**PIECE)
def speed_squared(M, tau, end):  # type: ignore[no-untyped-def]
    """Return the largest of `||D(t)||^2` at `tau`, at `end` and in the middle; `M` (3, 3) is the Gram matrix of D_q."""
    largest = 0.0
    for i in range(3):
        t = tau + 0.5 * i * (end - tau)
        s = M[0, 0] + t * (2 * M[0, 1] + t * (2 * M[0, 2] + M[1, 1] + t * (2 * M[1, 2] + t * M[2, 2])))
        largest = max(largest, s)
    return largest


@numba.njit(**PIECE)
def taylor(a, tau, z, d, U, train_output, end, series, c, P):  # type: ignore[no-untyped-def]
    """Fill the Taylor series of `a` and of `c` (3, .) around `tau`; return how far they are summed, and `da/dt`."""
    M, power, e, b = P[3:6], P[6:9], P[9:12], P[12]
    for q in range(TERMS):
        b[q] = dot(d[q], z)
        for p in range(TERMS):
            M[q, p] = dot(d[q], U[p])
    fastest = speed_squared(M, tau, end)
    reach = end - tau
    if fastest > 0.0:
        reach = min(reach, REACH / np.sqrt(fastest))
    power[0, 0] = 1.0  # (tau + s)^q in powers of s
    power[1, 0], power[1, 1] = tau, 1.0
    power[2, 0], power[2, 1], power[2, 2] = tau * tau, 2 * tau, 1.0
    for i in range(ORDER + 1):
        series[i] = 0.0
    for q in range(TERMS):
        c[q, 0] = 0.0
    series[0] = a
    for i in range(ORDER + 1):
        for q in range(TERMS):
            s = 0.0
            for j in range(min(q, i) + 1):
                s += power[q, j] * series[i - j]
            c[q, i + 1] = s / (i + 1)
        if i < ORDER and train_output:
            s = 0.0
            for q in range(TERMS):
                e[q, i] = b[q] if i == 0 else 0.0  # <D_q, w>
                for p in range(TERMS):
                    e[q, i] += M[q, p] * c[p, i]
                for j in range(min(q, i) + 1):
                    s += power[q, j] * e[q, i - j]
            series[i + 1] = s / (i + 1)
    return reach, series[1]


@numba.njit(**PIECE)
def next_event(lengths, size, z, mode, F, alpha, d, U, tau, reach, c, p):  # type: ignore[no-untyped-def]
    """Return the first change within `reach` (its duration, sample and kind), or `reach` and no sample."""
    n = z.shape[0]
    when, which, kind = reach, _NONE, _NONE
    c0, c1, c2 = at(c[0], reach), at(c[1], reach), at(c[2], reach)
    for k in range(n):
        if mode[k] != SLIDING:
            side = 1.0 if mode[k] == ON else -1.0
            ends = z[k] + c0 * U[0, k] + c1 * U[1, k] + c2 * U[2, k]
            if alpha == 1.0 or side * ends >= -BOUNDARY * size * lengths[k]:
                continue
            for i in range(ORDER + 2):
                p[i] = U[0, k] * c[0, i] + U[1, k] * c[1, i] + U[2, k] * c[2, i]
            p[0] = z[k]
            if which == _NONE or at(p, when) * side < 0.0:
                s = root(p, when, side)
                if which == _NONE or s < when:
                    when, which, kind = s, k, _CROSSING
            continue
        tolerance = 1e-10 * (abs(F[0, k]) + abs(F[1, k]) + abs(F[2, k]))
        now = np.sign((1.0 - alpha) * (F[0, k] + tau * (F[1, k] + tau * F[2, k])))
        for on in range(2):
            # d_k + f_k and d_k + alpha f_k keep their signs while the sample slides
            heard, side = (1.0, now) if on else (alpha, -now)
            x0, x1, x2 = d[0, k] + heard * F[0, k], d[1, k] + heard * F[1, k], d[2, k] + heard * F[2, k]
            t = tau + when
            if side * (x0 + t * (x1 + t * x2)) < -tolerance:
                for i in range(3, ORDER + 2):
                    p[i] = 0.0
                p[0] = x0 + tau * (x1 + tau * x2) + side * tolerance
                p[1], p[2] = x1 + 2 * tau * x2, x2
                s = root(p, when, side)
                if which == _NONE or s < when:
                    when, which, kind = s, k, _RELEASED_ON if on else _RELEASED_OFF
    return when, which, kind


@numba.njit(**INLINE)
def change(G, lengths, size, z, mode, f, alpha, sign, k, kind, at_once, work):  # type: ignore[no-untyped-def]
    """Change the modes of one neuron for an event of sample `k`."""
    n = z.shape[0]
    if kind == _CROSSING:
        z[k] = 0.0
        before = mode[k]
        if f[k] * (1.0 - alpha) * sign <= 0.0:  # not attracted from the other side: it goes through
            mode[k] = OFF if before == ON else ON
        settle(G, lengths, size, z, mode, f, alpha, sign, work)
        if mode[k] == before and at_once:
            mode[k] = SLIDING  # rounding: it neither stays nor leaves
    elif kind == _OUTPUT_SIGN:  # attracting samples repel from now on
        for i in range(n):
            if mode[i] == SLIDING:
                mode[i] = ON if f[i] * sign < 0.0 else OFF
    else:
        mode[k] = OFF if kind == _RELEASED_OFF else ON
        settle(G, lengths, size, z, mode, f, alpha, sign, work)


@numba.njit(**INLINE)
def neuron(  # type: ignore[no-untyped-def]
    G, lengths, z_0, w_0_squared, z, a, C, mode, F, alpha, train_output, end, times, outputs, work, P
):
    """Move one neuron to `end`; return its output weight there and how often its activation changed."""
    n = G.shape[0]
    tau, done, events = 0.0, 0, 0
    sign = np.sign(a)
    V = work[2]
    size, f = norm(w_0_squared, C, z_0, z), V[HEARD]
    d, U, c, p, series = V[DRIFT:PRODUCTS], V[PRODUCTS:], P[:3], P[13], P[14, : ORDER + 1]
    settle(G, lengths, size, z, mode, F[0], alpha, sign, work)
    drift(G, mode, F, alpha, d, U, work)
    while tau < end or done < times.shape[0]:
        reach, a_dot = taylor(a, tau, z, d, U, train_output, end, series, c, P)
        if sign == 0.0:
            sign = np.sign(a_dot)
        when, which, kind = reach, _NONE, _NONE
        if events < EVENTS_PER_SAMPLE * (n + 2):
            when, which, kind = next_event(lengths, size, z, mode, F, alpha, d, U, tau, reach, c, p)
            if train_output and at(series, when) * sign < 0.0:
                when, which, kind = root(series, when, sign), n, _OUTPUT_SIGN
        then = tau + when if which != _NONE or reach < end - tau else end
        while done < times.shape[0] and (times[done] <= then or then >= end):
            s = times[done] - tau
            c0, c1, c2, a_s = at(c[0], s), at(c[1], s), at(c[2], s), at(series, s)
            for k in range(n):
                if mode[k] != SLIDING:
                    x = z[k] + c0 * U[0, k] + c1 * U[1, k] + c2 * U[2, k]
                    outputs[done, k] += a_s * (x if x > 0.0 else alpha * x)
            done += 1
        c0, c1, c2, a = at(c[0], when), at(c[1], when), at(c[2], when), at(series, when)
        for k in range(n):
            z[k] += c0 * U[0, k] + c1 * U[1, k] + c2 * U[2, k]
            C[k] += c0 * d[0, k] + c1 * d[1, k] + c2 * d[2, k]
        tau = then
        if which != _NONE:
            events += 1
            for k in range(n):
                f[k] = F[0, k] + tau * (F[1, k] + tau * F[2, k])
            size = norm(w_0_squared, C, z_0, z)
            if kind == _OUTPUT_SIGN:
                a, sign = 0.0, -sign
            change(G, lengths, size, z, mode, f, alpha, sign, which, kind, when == 0.0, work)
            drift(G, mode, F, alpha, d, U, work)
    return a, events


@numba.njit(**STRICT)
def evolve(  # type: ignore[no-untyped-def]
    G, lengths, Z_0, w_0_squared, Z, a, C, mode, F, alpha, train_output, end, times, outputs, work, P
):
    """Move all neurons, in place, through the step up to `end` <= 1; return how often activations changed.

    Args:
        G: Gram matrix of the inputs (n, n).
        lengths: norms of the inputs (n,).
        Z_0: pre-activations at the start of the run (m, n).
        w_0_squared: squared norms of the hidden weights at the start of the run (m,).
        Z: pre-activations (m, n).
        a: output weights (m,).
        C: coefficients (m, n) on the inputs of what was added to the hidden weights since the start.
        mode: (m, n) int8, whether a sample is off, on or slid along.
        F: (3, n) polynomials of the weighted derivatives of the loss, times the length of the step.
        alpha: slope of the activation for negative arguments.
        train_output: whether output weights move.
        end: how far to go.
        times: (T,) ascending, at most `end`.
        outputs: (T, n), to which the outputs of the network at these times are added.
        work: a `boundaries.workspace`, overwritten.
        P: (POLYNOMIALS, ORDER + 2), overwritten.

    """
    events = 0
    for j in range(Z.shape[0]):
        a[j], changed = neuron(
            G, lengths, Z_0[j], w_0_squared[j], Z[j], a[j], C[j], mode[j], F, alpha, train_output, end, times, outputs,
            work, P,
        )  # fmt: skip
        events += changed
    return events
