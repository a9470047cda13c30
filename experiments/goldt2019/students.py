"""Online learning beside its ODE (dynamics), how they part with the input dimension (size), and
overparametrisation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.runs.replica import replicas_of

from .theory.order_parameters import Order, integrate, measured, predicted

CONFIG = "goldt2019/online.yaml"
ETA = 0.5
TEACHERS = 2
"""Step and M of the trained networks."""
NOISY = ("architecture.width=4", "dataset.noise=0.1")
SIZES = (25, 50, 100, 200)
MORE_SIZES = (25, 50, 100, 200, 400, 800)
STUDENTS = (2, 3, 4, 6)
BOTH = ("architecture.train_output=true", "initialization.output_value=null")
"""Both layers learn; output weights start as standard Gaussians."""
TRAINED_NOISE = 0.1
"""Of the labels of networks that are trained to their final errors."""
SMALL = 0.01
NOISE = 0.01
"""Step and noise of the final errors by the ODE from informed starts."""
LATE = 3e4
"""Time at which those are read."""
FLOOR = 1e-10
"""Smaller test errors are the rounding and the tolerance of the integration, and are not drawn."""


@dataclass(frozen=True)
class Curve:
    """A student and the ODE, at T snapshots."""

    name: str
    alpha: kit.Floats
    error: kit.Floats
    exact: kit.Floats
    R: kit.Floats
    R_ode: kit.Floats
    end: Order


def curve(run: kit.Run, name: str = "") -> Curve:
    """Return test errors and `v_k R_km` of a run, and of the ODE from its first state, at its T
    snapshots.
    """
    seen = measured(run)
    exact = predicted(run, seen[0])
    errors = [np.array([order.error for order in orders]) for orders in (seen, exact)]
    overlaps = [
        np.array([(order.v[:, None] * order.R).ravel() for order in orders])
        for orders in (seen, exact)
    ]
    return Curve(
        name=name,
        alpha=np.asarray(run.snapshot_iterations, np.float64) / run.config.dataset.dim,  # type: ignore[attr-defined]
        error=errors[0],
        exact=errors[1],
        R=overlaps[0],
        R_ode=overlaps[1],
        end=seen[-1],
    )


PLATEAU = (
    ("plateau", "Symmetric plateau", ", small step (test error of the ODE over theory)"),
    ("plateau-R", "Overlap of the student with the teacher", " (over theory)"),
)
"""Claims on the numbers of `plateau`: id, and the words around the number of students."""


def plateau(K: int) -> tuple[float, float]:
    """Return test error and mean overlap of the symmetric plateau, K = M, by the ODE at a small
    step.
    """
    rng = np.random.default_rng(0)
    start = Order(np.eye(K), 1e-6 * rng.standard_normal((K, K)), np.eye(K), np.ones(K), np.ones(K))
    path = integrate(start, np.concatenate([[0.0], np.geomspace(10, 3e4, 200)]), SMALL)[1:]
    errors = np.log([order.error for order in path])
    left = (
        int(np.argmax(errors < errors[0] - 8)) or len(errors) - 1
    )  # once a teacher is found the error falls for good
    flat = 1 + int(np.argmin(np.abs(np.gradient(errors))[1:left]))
    return float(np.exp(errors[flat])), float(path[flat].R.mean())


def plateau_theory(K: int) -> tuple[float, float]:
    """Return the same for vanishing steps: `(K/pi)[pi/6 - K asin(1/(2K))]`, `1/sqrt(K(2K-1))`
    (Saad and Solla 1995).
    """
    error = K / np.pi * (np.pi / 6 - K * np.arcsin(1 / (2 * K)))
    return float(error), float(1 / np.sqrt(K * (2 * K - 1)))


def unit(eta: float, noise: float) -> float:
    """Return the final test error of K = M students for small steps, by the noise of the
    gradient.
    """
    return float(eta * noise**2 * TEACHERS / (2 * np.pi * np.sqrt(3)))


def final_error(K: int, *, shared: bool, eta: float = SMALL) -> float:
    """Return the final test error of K students that know M teachers at a step, in units of the
    error of K = M.

    The others start at 0 with output weight 1, which stays (soft committee), or share teachers, and
    all learn.
    """
    M = TEACHERS
    if shared:
        owner = np.arange(K) % M
        R = np.eye(M)[owner]
        start = Order(R @ R.T, R, np.eye(M), 1.0 / R.sum(0)[owner], np.ones(M))
    else:
        known = np.array([1.0] * M + [1e-9] * (K - M))
        start = Order(np.diag(known**2), np.eye(K, M), np.eye(M), np.ones(K), np.ones(M))
    end = integrate(
        start, [0.0, LATE * SMALL / eta], eta, eta_v=eta if shared else 0.0, sigma=NOISE
    )[-1]
    return end.error / unit(eta, NOISE)


@dataclass(frozen=True)
class Dynamics:
    """Both runs, and plateaus by the number of students."""

    curves: list[Curve]
    plateaus: dict[int, tuple[float, float]]


def evidence_dynamics(runs: kit.Runs) -> Dynamics:
    """Read both runs; plateaus by the ODE."""
    return Dynamics(
        curves=[curve(run, role) for role, run in runs.items()],
        plateaus={K: plateau(K) for K in (2, 3)},
    )


def follows(run: Curve) -> float:
    """Return the mean ratio of the test error to the ODE's, alpha 10 to 100; NaN unless it fell to
    half by then.

    A student that stays where it starts follows the ODE, too.
    """
    before = (run.alpha >= 10) & (run.alpha <= 100)
    if not before.any() or run.error[before][0] > 0.5 * run.error[0]:
        return np.nan
    return float(np.mean((run.error / run.exact)[before]))


def alignment(end: Order) -> float:
    """Return the least cosine of a student with its nearest teacher; 0 where two students have
    the same.
    """
    cosines = np.abs(end.R) / np.sqrt(np.outer(np.diag(end.Q), np.diag(end.T)))
    teachers = cosines.argmax(axis=1)
    return float(cosines.max(axis=1).min()) if len(set(teachers.tolist())) == len(teachers) else 0.0


def claims_dynamics(e: Dynamics) -> list[kit.Claim]:
    first = e.curves[0]
    return [
        kit.claim(
            "ode",
            r"Online learning follows the ODE (test error over its, mean over $\alpha$ 10 to 100,"
            " the worse)",
            "ODE of the order parameters",
            kit.around(1.0),
            kit.farthest([follows(run) for run in e.curves]),
        ),
        kit.claim(
            "specialises",
            "After the plateau the students specialise and learn the teacher, K = M = 2 without "
            "noise (last test error over the plateau's)",
            "Saad and Solla 1995",
            kit.at_most(1e-4),
            first.error[-1] / plateau_theory(2)[0],
        ),
        kit.claim(
            "one-each",
            "Each student finds a teacher of its own (least cosine with it, K = M = 2)",
            "Saad and Solla 1995",
            kit.at_least(0.99),
            alignment(first.end),
        ),
        *(
            kit.theory(
                f"{key}-{K}",
                f"{statement}, K = M = {K}{note}",
                "Saad and Solla 1995",
                kit.near(1.0, 0.05),
                ode[k] / plateau_theory(K)[k],
            )
            for k, (key, statement, note) in enumerate(PLATEAU)
            for K, ode in e.plateaus.items()
        ),
    ]


def draw_dynamics(e: Dynamics) -> kit.Drawing:
    first = e.curves[0]
    alpha = first.alpha[1:]
    names = [
        f"$v_{k + 1}R_{{{k + 1}{m + 1}}}$"
        for k, m in np.ndindex(len(first.R[0]) // TEACHERS, TEACHERS)
    ]
    return kit.charts(
        kit.chart(
            "Test error",
            r"test error $\epsilon$",
            [
                kit.line(run.alpha[1:], run.error[1:], run.name.replace("K", "$K$"), "x")
                for run in e.curves
            ],
            [kit.line(run.alpha[1:], run.exact[1:]) for run in e.curves],
            kit.entry("ODE", "theory"),
            kit.level(plateau_theory(2)[0], "plateau, small steps, $K = M = 2$"),
            log="xy",
            limits=(FLOOR, None),
        ),
        kit.chart(
            f"Overlaps, {first.name}".replace("K", "$K$"),
            "overlaps $v_kR_{km}$",
            # not the colours of the first panel
            *(kit.line(alpha, R, look=f"C{j} x") for j, R in enumerate(first.R[1:].T, 2)),
            *(
                kit.line(alpha, R, names[j - 2], f"C{j}")
                for j, R in enumerate(first.R_ode[1:].T, 2)
            ),
            log="x",
        ),
        xlabel=r"$\alpha$ = steps / $N$",
    )


def fitted(sizes: kit.Floats, squares: kit.Floats) -> tuple[float, float]:
    """Return slope and intercept of the line through the logarithms of the root mean squares (S,
    R) over R teachers.
    """
    slope, constant = np.polyfit(np.log(sizes), np.log(np.sqrt(squares.mean(axis=1))), 1)
    return float(slope), float(constant)


@dataclass(frozen=True)
class Size:
    """Deviations from the ODE by the input dimension.

    The standard error of the slope comes from leaving out one teacher at a time (jackknife).
    """

    sizes: kit.Floats
    rms: kit.Floats
    line: tuple[float, float]
    fell: float
    error: float


def evidence_size(runs: kit.Runs) -> Size:
    """Return mean square differences of test errors from the ODE (S, R), S sizes and R teachers,
    and the fitted line.
    """
    sizes = np.array([run.config.dataset.dim for run in runs.values()], np.float64)  # type: ignore[attr-defined]
    curves = [[curve(replica) for replica in replicas_of(run)] for run in runs.values()]
    squares = np.array(
        [[np.mean((path.error - path.exact) ** 2) for path in row] for row in curves]
    )
    R = squares.shape[1]
    without = [fitted(sizes, np.delete(squares, k, axis=1))[0] for k in range(R)]
    fell = np.array([[path.error[-1] / path.error[0] for path in row] for row in curves])
    return Size(
        sizes=sizes,
        rms=np.sqrt(squares.mean(axis=1)),
        line=fitted(sizes, squares),
        fell=float(np.median(fell)),
        error=float(np.sqrt((R - 1) * np.var(without))),
    )


def claims_size(e: Size) -> list[kit.Claim]:
    """Compare with fluctuations of the size 1 / sqrt(N); students that did not learn have none
    to compare.
    """
    return [
        kit.claim(
            "slope",
            r"Deviations from the ODE vanish as $1/\sqrt N$ (power of N)",
            "Theorem on the limit of many inputs",
            kit.Interval(-0.65, -0.35),
            e.line[0] if e.fell < 0.5 else np.nan,
        ),
    ]


def draw_size(e: Size) -> kit.Drawing:
    slope, constant = e.line
    fit = rf"fit, $N^{{{slope:.2f}\pm{e.error:.2f}}}$"
    return kit.charts(
        kit.chart(
            "",
            r"rms of $\epsilon-\epsilon_{\rm ODE}$",
            kit.line(e.sizes, e.rms, "simulation less ODE", "points"),
            kit.line(e.sizes, np.exp(constant) * e.sizes**slope, fit, "theory dashed 0.9"),
            xlabel="input dimension $N$",
            log="xy",
            ticks=e.sizes,
        )
    )


@dataclass(frozen=True)
class Overparam:
    """Final errors by the number of students.

    By the ODE from informed starts: of soft committees, of both layers, of committees at half the
    step; and of the networks trained from random starts, `layers` -> (K, R), means over the last
    quarter of the training.
    """

    committee: list[float]
    both: list[float]
    halved: list[float]
    trained: dict[str, kit.Floats]


def evidence_overparam(runs: kit.Runs) -> Overparam:
    """Return final errors in units of the formula for K = M at their own step."""
    trained: dict[str, list[list[float]]] = {"soft": [], "both": []}
    for role, run in runs.items():
        last = 3 * len(run.snapshot_iterations) // 4
        size = unit(ETA, TRAINED_NOISE)
        trained[role.split(",")[0]].append(
            [
                float(np.mean([state.error for state in measured(replica)[last:]])) / size
                for replica in replicas_of(run)
            ]
        )
    return Overparam(
        committee=[final_error(K, shared=False) for K in STUDENTS],
        both=[final_error(K, shared=True) for K in STUDENTS],
        halved=[final_error(K, shared=False, eta=SMALL / 2) for K in STUDENTS],
        trained={layers: np.array(rows) for layers, rows in trained.items()},
    )


def expected(K: int, *, shared: bool) -> float:
    """Return the final error for vanishing steps, in units of the error of K = M (see NOTES)."""
    if not shared:
        return float((K - TEACHERS + TEACHERS / np.sqrt(3)) / (TEACHERS / np.sqrt(3)))
    counts = np.bincount(np.arange(K) % TEACHERS)
    return float(np.mean(1 / counts))


def medians(trained: Mapping[str, kit.Floats]) -> dict[str, kit.Floats]:
    """Return the medians (K,) over the teachers; NaN unless all are below the plateau, where
    students specialise.
    """
    values = {layers: np.median(rows, axis=1) for layers, rows in trained.items()}
    left = (
        max(errors.max() for errors in values.values()) * unit(ETA, TRAINED_NOISE)
        < plateau_theory(TEACHERS)[0]
    )
    return {
        layers: errors if left else np.full_like(errors, np.nan)
        for layers, errors in values.items()
    }


def claims_overparam(e: Overparam) -> list[kit.Claim]:
    formula = [expected(K, shared=False) for K in STUDENTS]
    median = medians(e.trained)
    soft = median["soft"]
    both = median["both"]
    return [
        kit.claim(
            "soft-grows",
            "Trained soft committees: the final error grows with every further student (least "
            "ratio of medians, K = 2, 3, 4, 6)",
            "abstract",
            kit.more_than(1),
            np.min(soft[1:] / soft[:-1]),
        ),
        kit.claim(
            "both-stays",
            "Trained in both layers the error does not grow with K (K = 6 over K = 2)",
            "abstract",
            kit.at_most(1.1),
            both[-1] / both[0],
        ),
        kit.claim(
            "trained-contrast",
            "With K = 6 students both layers are better than the soft committee (both layers "
            "over soft committee; at most the formula of the soft committee, inverted)",
            "abstract",
            kit.at_most(1 / formula[-1]),
            both[-1] / soft[-1],
        ),
        *(
            kit.theory(
                f"committee-{K}",
                "Soft committee: the final error is linear in K - M to first order in the step "
                f"(excess over the formula, over that at half the step, K = {K})",
                "abstract; eta sigma^2 / (2 pi) (K - M + M / sqrt 3) + O(eta^2)",
                kit.near(2, 0.2),
                (error / line - 1) / (half / line - 1),
            )
            for K, error, half, line in zip(STUDENTS, e.committee, e.halved, formula, strict=True)
        ),
        *(
            kit.theory(
                f"both-{K}",
                "Both layers: students share teachers, the error falls (over the formula, K ="
                f" {K})",
                "abstract; th0 / Z",
                kit.near(1.0, 0.05),
                error / expected(K, shared=True),
            )
            for K, error in zip(STUDENTS, e.both, strict=True)
        ),
        kit.theory(
            "contrast",
            "With more students the error of both layers does not grow (K = 6 over K = 2)",
            "abstract",
            kit.at_most(1.1),
            e.both[-1] / e.both[0],
        ),
    ]


def draw_overparam(e: Overparam) -> kit.Drawing:
    rows = {"soft committee": e.trained["soft"], "both layers": e.trained["both"]}
    medians = {name: np.median(values, axis=1) for name, values in rows.items()}
    laws = [[expected(K, shared=shared) for K in STUDENTS] for shared in (False, True)]
    return kit.charts(
        kit.chart(
            "trained, random starts",
            "final error / formula for $K=M$",
            kit.lines(STUDENTS, rows, "", "x"),
            kit.lines(STUDENTS, medians, look="1"),
            kit.entry("trained, each teacher", "theory x"),
            kit.entry("ODE", "theory points"),
            kit.entry("formula, small steps", "theory dashed 1"),
            log="y",
        ),
        kit.chart(
            "ODE, informed starts",
            "",
            kit.lines(STUDENTS, np.transpose([e.committee, e.both]), "", "points"),
            kit.lines(STUDENTS, np.transpose(laws), "", "dashed 1"),
            limits=(0, None),
        ),
        xlabel="students $K$ ($M=2$)",
        ticks=STUDENTS,
    )


def _online(N: int, alpha: int, *changes: str, every: int = 0, replicas: int = 1) -> kit.Wanted:
    """Return a student of `N` inputs, trained on `alpha N` new samples."""
    schedule = (
        (
            f"optimizer={{kind: sgd, batch_size: 1, samples: fresh, lr: {ETA / N!r}, iterations:"
            f" {alpha * N}}}"
        ),
        "dataset.n=1000",
        f"dataset.dim={N}",
    )
    recorded = (f"record.snapshots={{kind: every, interval: {every}}}",) if every else ()
    return kit.Wanted(CONFIG, (*schedule, *recorded, *changes), replicas)


def _dynamics(N: int, alpha: int) -> dict[str, kit.Wanted]:
    return {"K = 2": _online(N, alpha), "K = 4, noise": _online(N, alpha, *NOISY)}


def _sizes(sizes: Sequence[int], teachers: int) -> dict[str, kit.Wanted]:
    return {f"N = {N}": _online(N, 5, every=max(1, N // 5), replicas=teachers) for N in sizes}


def _final(alpha: int, teachers: int, N: int = 100) -> dict[str, kit.Wanted]:
    return {
        f"{layers}, K = {K}": _online(
            N,
            alpha,
            f"architecture.width={K}",
            f"dataset.noise={TRAINED_NOISE}",
            *changes,
            every=alpha * N // 40,
            replicas=teachers,
        )
        for layers, changes in (("soft", ()), ("both", BOTH))
        for K in STUDENTS
    }


FIGURES = kit.by_id(
    kit.Figure(
        id="goldt2019-dynamics",
        caption=(
            "Soft committee machines learn a teacher of two erf units from samples that they see"
            " once (crosses), and the ODE of their order parameters from the same start (lines);"
            " step 0.5. After the symmetric plateau each student specialises on a teacher."
        ),
        configs=_dynamics(300, 500),
        presets={"full": _dynamics(784, 1000)},
    ),
    kit.Figure(
        id="goldt2019-size",
        caption=(
            "Deviation of the test error of trained students from the ODE against the input"
            " dimension, alpha <= 5, with the fitted power."
        ),
        configs=_sizes(SIZES, 48),
        presets={"full": _sizes(MORE_SIZES, 128)},
    ),
    kit.Figure(
        id="goldt2019-overparam",
        caption=(
            "Final test error with label noise against the number of students, over the formula for"
            " K = M. (a) Trained from random starts at step 0.5, a cross for each teacher, lines"
            " through medians. (b) The ODE from informed starts at step 0.01, with the formulas for"
            " small steps. With fixed output weights it grows."
        ),
        configs=_final(1500, 5),
        presets={"full": _final(5000, 9)},
    ),
)
