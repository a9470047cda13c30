"""Figure 1: ReLU networks from several scales and imbalances, neurons in the plane and maps over
tau and delta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.runs.replica import replicas_of

PLANE = {
    "rich": (0.1, 0.0),
    "upstream": (0.1, 0.9999),
    "lazy": (2.0, 0.0),
    "downstream": (0.1, -0.9999),
}
"""Panels of Figure 1a: (tau, delta); the last two are its insets."""
MAP = "map {:d} {:d}"
"""Role of a run of the maps, by the places of tau and delta."""
TAUS = 10 ** np.linspace(-1, 0.3, 17)
DELTAS = np.linspace(-1, 1, 17)
"""Of the paper (`--preset full`)."""
SMALL = (range(0, 17, 4), (0, 4, 6, 7, 8, 12, 16))
"""Places of the small grid in them."""
TEACHER = kit.directions(
    np.array([[np.cos(t), np.sin(t)] for t in np.radians([-84.7795, 23.9442, 143.6173])])
)
TEACHER_SIGNS = np.array([-1.0, -1.0, 1.0])
"""Of Figure 1a, as released."""
CLOSE = 10.0
"""Degrees within which a neuron has the direction of one of the teacher."""
FITTED = 0.1
"""Share of the first loss below which the data count as fitted."""
REPLICAS = 8
"""Seeds of the column of the smallest tau, which the claims are about; the paper has 16
everywhere.
"""


def factors(tau: float, delta: float) -> tuple[float, float]:
    """Return A and 1/A: sizes `tau A` of w_j and `tau/A` of a_j have the imbalance `delta =
    a_j^2 - |w_j|^2`.
    """
    u = abs(delta) / tau**2
    smaller = float(np.sqrt(2 / (np.hypot(2, u) + u)))
    return (smaller, 1 / smaller) if delta >= 0 else (1 / smaller, smaller)


PRINTED = {
    "largest-100": ("kernel", 0, max, 0.2385, "The largest kernel distance on the map at t = 100"),
    "largest": ("kernel", 1, max, 0.537, "The largest kernel distance on the map at t = 1000"),
    "distance": ("moved", 1, max, 1.81, "The largest distance that weights travel to t = 1000"),
    "hamming-100": (
        "flips",
        0,
        max,
        20.31,
        "The most activations that have changed at t = 100, in neurons of 50",
    ),
    "hamming": ("flips", 1, max, 20.99, "The most activations that have changed at t = 1000"),
    "least-100": (
        "test",
        0,
        min,
        1.5168e-3 / 0.016476,
        "The least held-out loss at t = 100, over the zero function's",
    ),
    "least": (
        "test",
        1,
        min,
        8.675e-4 / 0.016476,
        "The least held-out loss at t = 1000, over the zero function's",
    ),
}
"""Claim -> map, place of the time, end of the range, number in the output of
`plot_supporting.ipynb` (cells 10, 11).
"""


@dataclass(frozen=True)
class Plane:
    """A run in the plane."""

    tau: float
    paths: kit.Floats
    signs: kit.Floats
    changed: float
    drift: float
    recovered: float


def plane(run: kit.Run) -> Plane:
    """Read a run in the plane: `paths` (K, m, 2) are `|a_j| w_j`, `recovered` is a share of the
    norms `|a_j| |w_j|`.
    """
    W, a = kit.recorded(run, "hidden_weight", "output_weight")
    imbalance = a**2 - np.sum(W**2, axis=2)
    mass = np.abs(a[-1]) * np.linalg.norm(W[-1], axis=1)
    cosines = np.where(
        np.sign(a[-1])[:, None] == TEACHER_SIGNS, kit.directions(W[-1]) @ TEACHER.T, -1.0
    ).max(axis=1)
    fitted = (
        run.final_loss < FITTED * run.losses[0]
    )  # before, neither signs nor imbalances are put to the test
    return Plane(
        tau=float(run.config.initialization.scale),  # type: ignore[attr-defined]
        paths=np.abs(a)[:, :, None] * W,
        signs=np.sign(a[-1]),
        changed=kit.given(fitted, int(np.sum(np.sign(a[-1]) != np.sign(a[0])))),
        drift=kit.given(fitted, np.abs(imbalance - imbalance[0]).max()),
        recovered=float(mass[cosines > np.cos(np.radians(CLOSE))].sum() / mass.sum()),
    )


def cell(run: kit.Run) -> kit.Floats:
    """Return test loss, kernel distance, flips and distance (4, times) of a run, or of its replicas
    on average.

    The test loss is divided by the zero function's after both means, as the released notebooks
    print them.
    """
    replicas = replicas_of(run) if "replicas" in run.info else [run]
    names = ("test_loss", "kernel_distance", "activation_flips", "distance")
    means = np.mean(
        [[replica.measures[name][1:] for name in names] for replica in replicas],
        axis=0,
    )
    null = np.mean([np.mean(np.square(replica.dataset().y_test)) for replica in replicas])  # type: ignore[arg-type]
    m = run.config.architecture.width  # type: ignore[attr-defined]
    return np.asarray(means * np.array([1 / null, 1.0, m, 1.0])[:, None])


@dataclass(frozen=True)
class Evidence:
    """Runs in the plane, and maps (times, deltas, taus)."""

    plane: dict[str, Plane]
    times: kit.Ints
    taus: kit.Floats
    deltas: kit.Floats
    test: kit.Floats
    kernel: kit.Floats
    flips: kit.Floats
    moved: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Read all runs; the maps `test`, `kernel`, `flips`, `moved` are (times, deltas, taus)."""
    cells = kit.by_values(runs, MAP)
    at = {place: cell(run) for place, run in cells.items()}
    columns, rows = (sorted({place[k] for place in at}) for k in (0, 1))
    maps = np.array([[at[i, j] for i in columns] for j in rows])  # (deltas, taus, 4, times)
    test, kernel, flips, moved = maps.transpose(2, 3, 0, 1)
    return Evidence(
        plane={role: plane(runs[role]) for role in PLANE},
        times=next(iter(cells.values())).snapshot_iterations[1:],
        taus=TAUS[columns],
        deltas=DELTAS[rows],
        test=test,
        kernel=kernel,
        flips=flips,
        moved=moved,
    )


def claims(e: Evidence) -> list[kit.Claim]:
    nets = e.plane
    drawn = "Figure 1b, map drawn by the released notebook"

    def at(values: kit.Floats, time: int, delta: float) -> float:  # at the smallest tau
        return float(values[list(e.times).index(time), int(np.argmin(np.abs(e.deltas - delta))), 0])

    rich, lazy = (
        [nets[name].recovered for name in names]
        for names in (("rich", "upstream"), ("lazy", "downstream"))
    )
    extremes = {
        id: float(end(getattr(e, name)[time].flat))
        for id, (name, time, end, _, _) in PRINTED.items()
    }
    largest = np.unravel_index(np.argmax(e.kernel[1]), e.kernel[1].shape)
    expected = kit.around(PRINTED["largest"][3])
    where = (
        e.taus[largest[1]] < 0.11
        and -0.4 <= e.deltas[largest[0]] < 0
        and expected.holds(extremes["largest"])
    )
    later = at(e.kernel, 1000, -1.0)
    rich_later = kit.Interval(0.05, 0.17)
    delayed = later >= 0.05  # without what comes later nothing is said of what is first
    return [
        kit.claim(
            "conserved",
            "Training conserves the imbalance $a_j^2 - |w_j|^2$ of every neuron (largest change "
            "until the data are fitted)",
            "Section 3, gradient flow",
            kit.less_than(1e-4),
            np.max([net.drift for net in nets.values()]),
        ),
        kit.claim(
            "signs",
            r"Output weights keep their signs where $\delta \ge 0$ (signs that changed until the"
            r" data "
            "are fitted)",
            "a_j^2 >= |w_j|^2 along the flow",
            kit.exactly(0),
            sum(nets[name].changed for name in ("rich", "upstream", "lazy")),
        ),
        kit.claim(
            "aligned",
            "Small and upstream networks turn to the teacher's neurons, large and downstream do not"
            " (share of $|a| |w|$ within 10 degrees, least of the former less most of the latter)",
            "Figure 1a",
            kit.more_than(0),
            round(min(rich) - max(lazy), 9),
        ),
        kit.claim(
            "upstream",
            r"Upstream networks generalise fast (held-out loss at $\delta$ = 1 over that at -1, "
            r"$\tau$ = 0.1, t = 100)",
            drawn,
            kit.at_most(0.25),
            at(e.test, 100, 1.0) / at(e.test, 100, -1.0),
        ),
        kit.claim(
            "flips-up",
            r"Activations of upstream networks change at once (Hamming distance of 50, $\delta$"
            r" = 1, "
            "t = 100)",
            drawn,
            kit.Interval(18, 21),
            at(e.flips, 100, 1.0),
        ),
        kit.claim(
            "flips-down",
            r"Patterns of downstream networks, which turn later, do not flip ($\delta$ = -1)",
            drawn,
            kit.less_than(3),
            kit.given(delayed, at(e.flips, 100, -1.0)),
        ),
        kit.claim(
            "lazy-first",
            r"Downstream networks, rich later, are lazy at first (kernel distance, $\tau$ = 0.1, "
            r"$\delta$ = -1, t = 100)",
            drawn,
            kit.less_than(0.08),
            kit.given(delayed, at(e.kernel, 100, -1.0)),
        ),
        kit.claim(
            "rich-later",
            "Downstream networks become rich: delayed rich (t = 1000)",
            drawn,
            rich_later,
            later,
        ),
        kit.claim(
            "where",
            r"The largest kernel distance is a small, slightly downstream network's ($\tau$ = 0.1, "
            r"$\delta$ from -0.4 to 0, and the distance is the one printed: 1 if so)",
            drawn,
            kit.exactly(1),
            where,
        ),
        *(
            kit.claim(
                id, statement, "printed in the released notebook", kit.around(value), extremes[id]
            )
            for id, (_, _, _, value, statement) in PRINTED.items()
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    count = len(e.times)
    figure, axes = kit.new_figure(4, 1 + (2 * count + 3) // 4, aspect=1.08, extra_height=0.25)
    for k, (name, net) in enumerate(e.plane.items()):
        _draw_plane(axes[k], net)
        kit.panel_label(axes[k], k, name.capitalize())
        axes[k].set_xlabel(rf"$\tau={PLANE[name][0]:g},\,\delta={PLANE[name][1]:.2g}$")
    for row, (values, label) in enumerate(((e.test, "test loss"), (e.kernel, "kernel distance"))):
        group = axes[4 + row * count : 4 + (row + 1) * count]
        for k, axis in enumerate(group):
            image = axis.pcolormesh(
                np.log10(e.taus),
                e.deltas,
                values[k],
                shading="nearest",
                cmap="viridis",
                vmin=0,
                vmax=float(values.max()),
                rasterized=True,
            )
            ticks = e.taus[[0, len(e.taus) // 2, -1]]
            axis.set_xticks(np.log10(ticks), [f"{tau:.2g}" for tau in ticks])
            axis.set_yticks(e.deltas, ["" for _ in e.deltas], minor=True)
            axis.set_yticks([-1, 0, 1], ["$-1$", "$0$", "$1$"] if k == 0 else ["", "", ""])
            axis.set_xlabel(r"scale $\tau$")
            kit.panel_label(axis, 4 + row * count + k, f"$t=10^{round(np.log10(e.times[k]))}$")
        group[0].set_ylabel(r"imbalance $\delta$", labelpad=0)
        figure.colorbar(image, ax=group, aspect=14, pad=0.03).set_label(label)
    dots = kit.MARKER + "-"
    handles = [
        axes[0].plot(
            [], [], dots, ms=3, color=kit.PALETTE.sign(s), label=f"$a_j {'>' if s > 0 else '<'} 0$"
        )[0]
        for s in (1.0, -1.0)
    ]
    handles += axes[0].plot([], [], color="black", lw=0.9, ls=kit.DASHED, label="teacher")
    handles += axes[0].plot(
        [], [], color="black", lw=0.8, ls=":", label=r"radius $\tau^2$, the start"
    )
    kit.figure_legend(figure, handles)
    return figure


def _draw_plane(axes: kit.Axes, net: Plane) -> None:
    reach = 1.15 * max(float(np.abs(net.paths).max()), 1.2 * net.tau**2)
    for j in range(net.paths.shape[1]):
        look: dict[str, Any] = {"color": kit.PALETTE.sign(net.signs[j])}
        axes.plot(*net.paths[:, j].T, lw=0.8, alpha=0.7, **look)
        axes.plot(*net.paths[-1, j], kit.MARKER, ms=2.5, **look)
    for t, s in zip(TEACHER, TEACHER_SIGNS, strict=True):
        axes.plot(
            *np.outer(t, [0, 2 * reach]),
            color=kit.PALETTE.sign(s),
            lw=0.9,
            ls=kit.DASHED,
            zorder=0,
        )
    angle = np.linspace(0, 2 * np.pi, 100)
    axes.plot(net.tau**2 * np.cos(angle), net.tau**2 * np.sin(angle), color="black", lw=0.8, ls=":")
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=(), yticks=())


def _wanted(tau: float, delta: float, config: str, *more: str, replicas: int = 1) -> kit.Wanted:
    A, B = factors(tau, delta)
    return kit.Wanted(
        config,
        (f"initialization.scale={tau!r}", f"initialization.scales=[{A!r}, {B!r}]", *more),
        replicas,
    )


def _maps(columns: Any, rows: Any, *more: str, replicas: int = 1) -> dict[str, kit.Wanted]:
    config = "kunin2024/relu.yaml"
    return {
        MAP.format(i, j): _wanted(
            float(TAUS[i]),
            float(DELTAS[j]),
            config,
            f"optimizer.lr={5e-3 / float(TAUS[i]) ** 2!r}",
            *more,
            replicas=replicas,
        )
        for i in columns
        for j in rows
    }


FULL = (
    "dtype=float64",
    "dataset.n_test=10000",
    "optimizer.iterations=100000",
    "record.snapshots={kind: list, include: [100, 1000, 10000, 100000]}",
)
RELEASED = ("optimizer.lr=1e-4", "optimizer.iterations=1000000")
FIGURE = kit.Figure(
    id="kunin2024-fig1",
    caption=(
        "Two-layer ReLU networks whose neurons all start at one scale tau and imbalance delta."
        " First row: neurons |a_j| w_j in the plane, each panel to its own scale, lines their"
        " paths, dots their ends. Below: held-out loss over the zero function's, and distance of"
        " the tangent kernel from the first, in 100 dimensions; the first column of each map is a"
        " mean of several seeds."
    ),
    passes={
        "slow": {
            "aligned hamming": (
                "Neurons turn, and activations change, within the first hundredth of the time."
            )
        },
        "wrong_gradient": {
            "upstream flips-up least-100 least": (
                "Upstream networks, which have the least loss, learn by their hidden weights, whose"
                " update is right."
            ),
        },
        "linear": {
            "flips-down lazy-first rich-later": (
                "The imbalance delays the motion of directions, whatever the activation."
            ),
        },
    },
    configs={
        **{name: _wanted(*values, "kunin2024/circle.yaml") for name, values in PLANE.items()},
        **_maps(SMALL[0][1:], SMALL[1]),
        **_maps(SMALL[0][:1], SMALL[1], replicas=REPLICAS),
    },
    presets={
        "full": {
            **{
                name: _wanted(*values, "kunin2024/circle.yaml", *RELEASED)
                for name, values in PLANE.items()
            },
            **_maps(range(17), range(17), *FULL, replicas=16),
        }
    },
)
