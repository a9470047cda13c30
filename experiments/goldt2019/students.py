"""Online learning beside its ODE (dynamics), how they part with the input dimension (size), and overparametrisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit

from .theory.order_parameters import Order, integrate, measured, predicted

CONFIG = "goldt2019/online.yaml"
INPUTS = 300
"""N of the dynamics."""
LARGER = (f"dataset.dim={INPUTS}", f"dataset.n={100 * INPUTS}", f"optimizer.lr={0.5 / INPUTS!r}")
DYNAMICS = {"K = 2": LARGER, "K = 4, noise": (*LARGER, "architecture.width=4", "dataset.noise=0.1")}
SIZES, SEEDS = (25, 50, 100, 200), range(6)
ETA, ALPHA = 0.5, 5
TEACHERS, STUDENTS = 2, (2, 3, 4, 6)
SMALL, NOISE = 0.01, 0.01
"""Step and noise of the final errors."""
LATE = 3e4
"""Time at which final errors are read."""
ORIGIN: dict[str, kit.Origin] = {"model, rule of learning": "released", "sizes, steps, lengths": "assumed"}


@dataclass(frozen=True)
class Curve:
    """Test error of a trained student, and of the ODE from its start."""

    name: str
    alpha: kit.Floats
    """(T,) steps / N."""
    error: kit.Floats
    exact: kit.Floats
    R: kit.Floats
    """(T, K M) `v_k R_km` of the trained student."""
    overlaps_ode: kit.Floats


def curve(name: str, run: kit.Run) -> Curve:
    """Read a run, and integrate from its first state."""
    seen = measured(run)
    exact = predicted(run, seen[0])
    alpha = np.asarray(run.snapshot_iterations, np.float64) / run.config.dataset.dim  # type: ignore[attr-defined]
    errors = [np.array([one.error for one in orders]) for orders in (seen, exact)]
    overlaps = [np.array([(one.v[:, None] * one.R).ravel() for one in orders]) for orders in (seen, exact)]
    return Curve(name, alpha, *errors, *overlaps)


def plateau(K: int) -> tuple[float, float]:
    """Return test error and mean overlap of the symmetric plateau, K = M, by the ODE at a small step."""
    rng = np.random.default_rng(0)
    start = Order(np.eye(K), 1e-6 * rng.standard_normal((K, K)), np.eye(K), np.ones(K), np.ones(K))
    path = integrate(start, np.concatenate([[0.0], np.geomspace(10, 3e4, 200)]), SMALL)[1:]
    errors = np.log([one.error for one in path])
    left = int(np.argmax(errors < errors[0] - 8)) or len(errors) - 1  # once a teacher is found the error falls for good
    flat = 1 + int(np.argmin(np.abs(np.gradient(errors))[1:left]))
    return float(np.exp(errors[flat])), float(path[flat].R.mean())


def plateau_theory(K: int) -> tuple[float, float]:
    """Return the same for vanishing steps: `(K/pi)[pi/6 - K asin(1/(2K))]`, `1/sqrt(K(2K-1))` (Saad and Solla 1995)."""
    error = K / np.pi * (np.pi / 6 - K * np.arcsin(1 / (2 * K)))
    return float(error), float(1 / np.sqrt(K * (2 * K - 1)))


def final_error(K: int, *, shared: bool) -> float:
    """Return the final test error of K students that know M teachers, in units of that of K = M.

    The others start at 0 with output weight 1, which stays (soft committee), or share teachers, and all learn.
    """
    M = TEACHERS
    unit = SMALL * NOISE**2 * M / (2 * np.pi * np.sqrt(3))
    if shared:
        owner = np.arange(K) % M
        R = np.eye(M)[owner]
        start = Order(R @ R.T, R, np.eye(M), 1.0 / R.sum(0)[owner], np.ones(M))
    else:
        known = np.array([1.0] * M + [1e-9] * (K - M))
        start = Order(np.diag(known**2), np.eye(K, M), np.eye(M), np.ones(K), np.ones(M))
    end = integrate(start, [0.0, LATE], SMALL, eta_v=SMALL if shared else 0.0, sigma=NOISE)[-1]
    return float(end.error / unit)


def evidence_of_dynamics(runs: kit.Runs) -> tuple[list[Curve], dict[int, tuple[float, float]]]:
    """Read both runs; plateaus by the ODE."""
    return [curve(role, run) for role, run in runs.items()], {K: plateau(K) for K in (2, 3)}


def claims_of_dynamics(e: tuple[list[Curve], dict[int, tuple[float, float]]]) -> list[kit.Claim]:
    """Compare with the ODE and its plateau."""
    curves, plateaus = e
    ends = [float(np.mean((one.error / one.exact)[one.alpha >= 10])) for one in curves]
    # fmt: off
    return [
        kit.claim("ode", "Online learning follows the ODE (test error over its, mean over alpha 10 to 100, the worse)",
                  "ODE of the order parameters", kit.around(1.0), max(ends, key=lambda one: abs(np.log(one)))),
        kit.claim("overlaps", "and so do the overlaps with the teacher (largest difference; they vary by 1/sqrt(N))",
                  "ODE of the order parameters", kit.less_than(3 / np.sqrt(INPUTS)),
                  max(float(np.abs(one.R - one.overlaps_ode).max()) for one in curves)),
        *(kit.theory(f"plateau-{K}", f"Symmetric plateau, K = M = {K}, small step (test error of the ODE over theory)",
                     "Saad and Solla 1995", kit.near(1.0, 0.05), found[0] / plateau_theory(K)[0])
          for K, found in plateaus.items()),
        *(kit.theory(f"plateau-R-{K}", f"and its overlap with the teacher, K = M = {K} (over theory)",
                     "Saad and Solla 1995", kit.near(1.0, 0.05), found[1] / plateau_theory(K)[1])
          for K, found in plateaus.items()),
        *(kit.finding(f"deviation-{k}", f"Median relative deviation from the ODE, {one.name}", "",
                      float(np.median(np.abs(one.error / one.exact - 1)))) for k, one in enumerate(curves)),
    ]
    # fmt: on


def draw_dynamics(e: tuple[list[Curve], dict[int, tuple[float, float]]]) -> kit.Drawing:
    """Draw test errors and the overlaps of the first run, crosses trained, lines the ODE."""
    figure, axes = kit.new_figure(2, 1, aspect=0.8, extra_height=0.3)
    handles: list[kit.Artist] = []
    for k, one in enumerate(e[0]):
        (dots,) = axes[0].plot(one.alpha[1:], one.error[1:], "x", ms=4, color=kit.SERIES[k], label=one.name)
        axes[0].plot(one.alpha[1:], one.exact[1:], color=kit.SERIES[k])
        handles.append(dots)
    value = axes[0].axhline(plateau_theory(2)[0], color="black", lw=0.9, ls=(0, (4, 2)))
    value.set_label("plateau, small steps, K = M = 2")
    axes[0].set(xscale="log", yscale="log", xlabel=r"$\alpha$ = steps / $N$", ylabel=r"test error $\epsilon$")
    first = e[0][0]
    for j in range(first.R.shape[1]):
        axes[1].plot(first.alpha[1:], first.R[1:, j], "x", ms=4, color=kit.SERIES[j])
        axes[1].plot(first.alpha[1:], first.overlaps_ode[1:, j], color=kit.SERIES[j])
    axes[1].set(xscale="log", xlabel=r"$\alpha$ = steps / $N$", ylabel="overlaps $v_kR_{km}$")
    kit.panel_label(axes[0], 0, "Test error")
    kit.panel_label(axes[1], 1, f"Overlaps, {first.name}")
    line = axes[1].plot([], [], color="black", label="ODE")[0]
    kit.figure_legend(figure, [*handles, line, value])
    return figure


def evidence_of_size(runs: kit.Runs) -> kit.Floats:
    """Return the root mean square over times and seeds of the difference of test errors, (sizes,)."""
    gaps: dict[int, list[kit.Floats]] = {N: [] for N in SIZES}
    for role, run in runs.items():
        one = curve(role, run)
        gaps[int(run.config.dataset.dim)].append(one.error - one.exact)  # type: ignore[attr-defined]
    return np.array([float(np.sqrt(np.mean(np.square(np.concatenate(gaps[N]))))) for N in SIZES])


def claims_of_size(rms: kit.Floats) -> list[kit.Claim]:
    """Compare with fluctuations of the size 1 / sqrt(N)."""
    slope = float(np.polyfit(np.log(SIZES), np.log(rms), 1)[0])
    # fmt: off
    return [
        kit.claim("slope", "Deviations from the ODE vanish as 1 / sqrt(N) (power, N = 25 to 200)",
                  "Theorem on the limit of many inputs", kit.Interval(-0.65, -0.35), slope),
        *(kit.finding(f"rms-{N}", f"Root mean square deviation of the test error, N = {N}", "", one)
          for N, one in zip(SIZES, rms, strict=True)),
    ]
    # fmt: on


def draw_size(rms: kit.Floats) -> kit.Drawing:
    """Draw the deviation against N."""
    figure, (axes,) = kit.new_figure(1, 1, extra_height=0.2)
    sizes = np.array(SIZES, np.float64)
    (dots,) = axes.plot(sizes, rms, "o", color=kit.SERIES[0], label="simulation less ODE, 6 seeds")
    look: dict[str, Any] = {"color": "black", "label": r"$N^{-1/2}$"}
    (line,) = axes.plot(sizes, rms[-1] * (sizes / sizes[-1]) ** -0.5, ls="--", lw=0.9, **look)
    axes.set(xscale="log", yscale="log", xlabel="input dimension $N$", ylabel=r"rms of $\epsilon-\epsilon_{\rm ODE}$")
    axes.set_xticks(SIZES, labels=[str(N) for N in SIZES])
    axes.minorticks_off()
    kit.figure_legend(figure, [dots, line])
    return figure


def evidence_of_overparam(runs: kit.Runs) -> tuple[list[float], list[float]]:
    """Return the final errors of soft committees, and of students that learn both layers."""
    return [final_error(K, shared=False) for K in STUDENTS], [final_error(K, shared=True) for K in STUDENTS]


def expected(K: int, *, shared: bool) -> float:
    """Return the final error for vanishing steps, in units of that of K = M (see NOTES)."""
    if not shared:
        return float((K - TEACHERS + TEACHERS / np.sqrt(3)) / (TEACHERS / np.sqrt(3)))
    counts = np.bincount(np.arange(K) % TEACHERS)
    return float(np.mean(1 / counts))


def claims_of_overparam(e: tuple[list[float], list[float]]) -> list[kit.Claim]:
    """Compare with the abstract and with gradient noise at the minimum."""
    committee, both = e
    # fmt: off
    return [
        *(kit.theory(f"committee-{K}", f"Soft committee: the final error is linear in K - M (over formula, K = {K})",
                     "abstract; eta sigma^2 / (2 pi) (K - M + M / sqrt 3)", kit.Interval(0.95, 1.1),
                     found / expected(K, shared=False)) for K, found in zip(STUDENTS, committee, strict=True)),
        *(kit.theory(f"both-{K}", f"Both layers: students share teachers, the error falls (over the formula, K = {K})",
                     "abstract; th0 / Z", kit.near(1.0, 0.05), found / expected(K, shared=True))
          for K, found in zip(STUDENTS, both, strict=True)),
        kit.theory("contrast", "With more students the error of both layers does not grow (K = 6 over K = 2)",
                   "abstract", kit.at_most(1.1), both[-1] / both[0]),
    ]
    # fmt: on


def draw_overparam(e: tuple[list[float], list[float]]) -> kit.Drawing:
    """Draw final errors against K with the formulas."""
    figure, (axes,) = kit.new_figure(1, 1, extra_height=0.3)
    handles = []
    for k, (values, shared, name) in enumerate(((e[0], False, "soft committee"), (e[1], True, "both layers"))):
        handles += axes.plot(STUDENTS, values, "o", color=kit.SERIES[k], label=f"ODE, {name}")
        line = [expected(K, shared=shared) for K in STUDENTS]
        handles += axes.plot(STUDENTS, line, color=kit.SERIES[k], lw=1.0, label=f"formula, {name}")
    axes.set(xlabel="students $K$ ($M=2$)", ylabel=r"final error / that of $K=M$", ylim=(0, None), xticks=STUDENTS)
    kit.figure_legend(figure, handles, columns=2)
    return figure


def _sizes(sizes: Sequence[int], seeds: Sequence[int]) -> dict[str, kit.Wanted]:
    return {
        f"N = {N}, seed {seed}": kit.Wanted(
            CONFIG,
            (f"dataset.dim={N}", f"dataset.n={ALPHA * N}", f"optimizer.lr={ETA / N!r}", f"seed={seed}",
             f"record.snapshots={{kind: every, interval: {max(1, N // 5)}}}"),
        )
        for N in sizes for seed in seeds
    }  # fmt: skip


FIGURES = {
    "goldt2019-dynamics": kit.Figure(
        id="goldt2019-dynamics",
        caption=(
            "Soft committee machines learn a teacher of two erf units from samples that they see once (crosses), and "
            "the ODE of their order parameters from the same start (lines); N = 300, step 0.5."
        ),
        configs={role: kit.Wanted(CONFIG, change) for role, change in DYNAMICS.items()}, origin=ORIGIN,
        evidence=evidence_of_dynamics, claims=claims_of_dynamics, draw=draw_dynamics,
    ),
    "goldt2019-size": kit.Figure(
        id="goldt2019-size",
        caption="Deviation of the test error of trained students from the ODE against the input dimension, alpha <= 5.",
        configs=dict(_sizes(SIZES, SEEDS)), origin=ORIGIN,
        evidence=evidence_of_size, claims=claims_of_size, draw=draw_size,
    ),
    "goldt2019-overparam": kit.Figure(
        id="goldt2019-overparam",
        caption=(
            "Final test error with label noise against the number of students, by the ODE from informed starts: with "
            "fixed output weights it grows, with both layers trained it falls."
        ),
        origin=ORIGIN, evidence=evidence_of_overparam, claims=claims_of_overparam, draw=draw_overparam,
    ),
}  # fmt: skip
