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
FULL = ("dataset.dim=784", "dataset.n=1000",
        "optimizer={kind: sgd, batch_size: 1, samples: fresh, lr: 6.377551e-4, iterations: 784000}")  # fmt: skip
"""The released N, to alpha = 1000; samples are drawn as they are needed."""
DYNAMICS = {"K = 2": LARGER, "K = 4, noise": (*LARGER, "architecture.width=4", "dataset.noise=0.1")}
SIZES, SEEDS = (25, 50, 100, 200), range(6)
MORE_SIZES, MORE_SEEDS = (25, 50, 100, 200, 400, 800), range(24)
"""Of `--preset full`."""
ETA, ALPHA = 0.5, 5
TEACHERS, STUDENTS = 2, (2, 3, 4, 6)
SMALL, NOISE = 0.01, 0.01
"""Step and noise of the final errors."""
LATE = 3e4
"""Time at which final errors are read."""
FLOOR = 1e-10
"""Smaller test errors are the rounding and the tolerance of the integration, and are not drawn."""
ORIGIN: dict[str, kit.Origin] = {"model, rule of learning": "released", "sizes, steps, lengths": "chosen"}


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


def final_error(K: int, *, shared: bool, eta: float = SMALL) -> float:
    """Return the final test error of K students that know M teachers at a step, in units of that of K = M.

    The others start at 0 with output weight 1, which stays (soft committee), or share teachers, and all learn.
    """
    M = TEACHERS
    unit = eta * NOISE**2 * M / (2 * np.pi * np.sqrt(3))
    if shared:
        owner = np.arange(K) % M
        R = np.eye(M)[owner]
        start = Order(R @ R.T, R, np.eye(M), 1.0 / R.sum(0)[owner], np.ones(M))
    else:
        known = np.array([1.0] * M + [1e-9] * (K - M))
        start = Order(np.diag(known**2), np.eye(K, M), np.eye(M), np.ones(K), np.ones(M))
    end = integrate(start, [0.0, LATE * SMALL / eta], eta, eta_v=eta if shared else 0.0, sigma=NOISE)[-1]
    return float(end.error / unit)


def evidence_of_dynamics(runs: kit.Runs) -> tuple[list[Curve], dict[int, tuple[float, float]]]:
    """Read both runs; plateaus by the ODE."""
    return [curve(role, run) for role, run in runs.items()], {K: plateau(K) for K in (2, 3)}


def claims_of_dynamics(e: tuple[list[Curve], dict[int, tuple[float, float]]]) -> list[kit.Claim]:
    """Compare with the ODE and its plateau."""
    curves, plateaus = e
    ends = [float(np.mean((one.error / one.exact)[(one.alpha >= 10) & (one.alpha <= 100)])) for one in curves]
    # fmt: off
    return [
        kit.claim("ode", "Online learning follows the ODE (test error over its, mean over alpha 10 to 100, the worse)",
                  "ODE of the order parameters", kit.around(1.0), max(ends, key=lambda one: abs(np.log(one)))),
        *(kit.theory(f"plateau-{K}", f"Symmetric plateau, K = M = {K}, small step (test error of the ODE over theory)",
                     "Saad and Solla 1995", kit.near(1.0, 0.05), found[0] / plateau_theory(K)[0])
          for K, found in plateaus.items()),
        *(kit.theory(f"plateau-R-{K}", f"and its overlap with the teacher, K = M = {K} (over theory)",
                     "Saad and Solla 1995", kit.near(1.0, 0.05), found[1] / plateau_theory(K)[1])
          for K, found in plateaus.items()),
        kit.finding("overlaps", "Largest difference of an overlap with the teacher from the ODE, alpha <= 100", "",
                    max(float(np.abs(one.R - one.overlaps_ode)[one.alpha <= 100].max()) for one in curves)),
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
    axes[0].set_ylim(bottom=max(FLOOR, axes[0].get_ylim()[0]))
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


def evidence_of_size(runs: kit.Runs) -> dict[int, float]:
    """Return the root mean square over times and seeds of the difference of test errors by size."""
    gaps: dict[int, list[kit.Floats]] = {}
    for role, run in runs.items():
        one = curve(role, run)
        gaps.setdefault(int(run.config.dataset.dim), []).append(one.error - one.exact)  # type: ignore[attr-defined]
    return {N: float(np.sqrt(np.mean(np.square(np.concatenate(gaps[N]))))) for N in sorted(gaps)}


def claims_of_size(rms: dict[int, float]) -> list[kit.Claim]:
    """Compare with fluctuations of the size 1 / sqrt(N)."""
    slope = float(np.polyfit(np.log(list(rms)), np.log(list(rms.values())), 1)[0])
    # fmt: off
    return [
        kit.claim("slope", "Deviations from the ODE vanish as 1 / sqrt(N) (power of N)",
                  "Theorem on the limit of many inputs", kit.Interval(-0.65, -0.35), slope),
        *(kit.finding(f"rms-{N}", f"Root mean square deviation of the test error, N = {N}", "", one)
          for N, one in rms.items()),
    ]
    # fmt: on


def draw_size(rms: dict[int, float]) -> kit.Drawing:
    """Draw the deviation against N."""
    figure, (axes,) = kit.new_figure(1, 1, extra_height=0.2)
    sizes, last = np.array(list(rms), np.float64), list(rms.values())[-1]
    (dots,) = axes.plot(sizes, list(rms.values()), kit.MARKER, color=kit.SERIES[0], label="simulation less ODE")
    look: dict[str, Any] = {"color": "black", "label": r"$N^{-1/2}$"}
    (line,) = axes.plot(sizes, last * (sizes / sizes[-1]) ** -0.5, ls="--", lw=0.9, **look)
    axes.set(xscale="log", yscale="log", xlabel="input dimension $N$", ylabel=r"rms of $\epsilon-\epsilon_{\rm ODE}$")
    axes.set_xticks(sizes, labels=[str(N) for N in rms])
    axes.set_xticks([], minor=True)
    kit.figure_legend(figure, [dots, line])
    return figure


def evidence_of_overparam(runs: kit.Runs) -> tuple[list[float], list[float], list[float]]:
    """Return the final errors of soft committees, of students that learn both layers, of committees at half the step.

    All are in units of the formula for K = M at their own step.
    """
    return (
        [final_error(K, shared=False) for K in STUDENTS],
        [final_error(K, shared=True) for K in STUDENTS],
        [final_error(K, shared=False, eta=SMALL / 2) for K in STUDENTS],
    )


def expected(K: int, *, shared: bool) -> float:
    """Return the final error for vanishing steps, in units of that of K = M (see NOTES)."""
    if not shared:
        return float((K - TEACHERS + TEACHERS / np.sqrt(3)) / (TEACHERS / np.sqrt(3)))
    counts = np.bincount(np.arange(K) % TEACHERS)
    return float(np.mean(1 / counts))


def claims_of_overparam(e: tuple[list[float], list[float], list[float]]) -> list[kit.Claim]:
    """Compare with the abstract and with gradient noise at the minimum."""
    committee, both, halved = e
    formula = [expected(K, shared=False) for K in STUDENTS]
    # fmt: off
    return [
        *(kit.theory(f"committee-{K}", "Soft committee: the final error is linear in K - M to first order in the step "
                     f"(excess over the formula, over that at half the step, K = {K})", "abstract; eta sigma^2 "
                     "/ (2 pi) (K - M + M / sqrt 3) + O(eta^2)", kit.near(2, 0.2), (one / line - 1) / (half / line - 1))
          for K, one, half, line in zip(STUDENTS, committee, halved, formula, strict=True)),
        *(kit.finding(f"over-{K}", f"Soft committee: final error over the formula, K = {K}", "abstract", one / line)
          for K, one, line in zip(STUDENTS, committee, formula, strict=True)),
        *(kit.theory(f"both-{K}", f"Both layers: students share teachers, the error falls (over the formula, K = {K})",
                     "abstract; th0 / Z", kit.near(1.0, 0.05), found / expected(K, shared=True))
          for K, found in zip(STUDENTS, both, strict=True)),
        kit.theory("contrast", "With more students the error of both layers does not grow (K = 6 over K = 2)",
                   "abstract", kit.at_most(1.1), both[-1] / both[0]),
    ]
    # fmt: on


def draw_overparam(e: tuple[list[float], list[float], list[float]]) -> kit.Drawing:
    """Draw final errors against K with the formulas."""
    figure, (axes,) = kit.new_figure(1, 1, extra_height=0.3)
    handles = []
    for k, (values, shared, name) in enumerate(((e[0], False, "soft committee"), (e[1], True, "both layers"))):
        handles += axes.plot(STUDENTS, values, kit.MARKER, color=kit.SERIES[k], label=f"ODE, {name}")
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
            "the ODE of their order parameters from the same start (lines); step 0.5."
        ),
        configs={role: kit.Wanted(CONFIG, change) for role, change in DYNAMICS.items()}, origin=ORIGIN,
        presets={"full": {role: kit.Wanted(CONFIG, (*change, *FULL)) for role, change in DYNAMICS.items()}},
        evidence=evidence_of_dynamics, claims=claims_of_dynamics,
    ),
    "goldt2019-size": kit.Figure(
        id="goldt2019-size",
        caption="Deviation of the test error of trained students from the ODE against the input dimension, alpha <= 5.",
        configs=dict(_sizes(SIZES, SEEDS)), origin=ORIGIN,
        presets={"full": dict(_sizes(MORE_SIZES, MORE_SEEDS))},
        evidence=evidence_of_size, claims=claims_of_size,
    ),
    "goldt2019-overparam": kit.Figure(
        id="goldt2019-overparam",
        caption=(
            "Final test error with label noise against the number of students, by the ODE from informed starts: with "
            "fixed output weights it grows, with both layers trained it falls."
        ),
        origin=ORIGIN, evidence=evidence_of_overparam, claims=claims_of_overparam,
    ),
}  # fmt: skip
