"""That panels show the numbers of the run."""

import numpy as np
import pytest

from dynamics_cli.analysis import curves
from dynamics_cli.analysis.networks import drawn_measures
from dynamics_cli.analysis.panels import draw_panel, panels_of
from dynamics_cli.analysis.scenes import neurons
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.neurons import cosines, norms
from dynamics_cli.measures.spectra import stable_rank

from .conftest import ORTHOGONAL


def test_the_loss_is_that_of_the_run_with_its_plateaus(orthogonal):
    (chart,) = curves.losses(View(orthogonal))
    (line,) = chart.lines
    assert np.array_equal(
        [line.x, line.columns[:, 0]], [orthogonal.loss_iterations, orthogonal.losses]
    )
    assert [round(one.value, 1) for one in chart.plateaus][:1] == [1.0]
    for at, label in (
        (700, "700"),
        (10**6, "1\N{THIN SPACE}500"),
    ):  # beyond the end it is the end that is marked
        (axes,) = draw_panel(orthogonal, "loss", at).axes
        assert label in [text.get_text() for text in axes.texts]


def test_rescaled_time_and_held_out_data_have_curves(classified):
    loss, over_time = curves.losses(View(classified))
    assert over_time.xlabel == "time"
    assert np.asarray(over_time.lines[0].x)[-1] == classified.times[-1]
    assert [line.name for line in loss.lines] == ["loss", "test loss"]
    assert loss.lines[1].columns[:, 0] == pytest.approx(classified.measures["test_loss"])
    (accuracy,) = curves.measures(View(classified))
    assert [line.name for line in accuracy.lines] == ["training accuracy", "test accuracy"]
    assert accuracy.lines[1].columns[:, 0] == pytest.approx(classified.measures["test_accuracy"])
    assert (accuracy.log_y, tuple(accuracy.reach)) == (False, (0.5, 1.0))


def test_measures_of_any_name_and_shape(write):
    found = {
        i: {
            "margin": 1.0 + i,
            "angles": np.array([1.0, 2.0, 3.0]) * i,
            "gaps": np.array([1.0, np.nan, 3.0]) * i,
            "many": np.arange(30.0),
            "lost": np.nan,
        }
        for i in range(3)
    }
    run = write([1.0, 0.9, 0.8], {i: {} for i in range(3)}, measures=found)
    margin, angles, some, many, lost = sorted(
        curves.measures(View(run)), key=lambda one: list(found[0]).index(one.ylabel)
    )
    assert margin.lines[0].columns[:, 0] == pytest.approx([1, 2, 3])
    assert [line.name for line in angles.lines] == ["1", "2", "3"]
    assert [line.name for line in some.lines] == ["1", "3"]
    assert (len(many.lines), many.note) == (21, "21 of 30 curves")
    assert lost.note == "no finite value is recorded"
    assert len(draw_panel(run, "measures").axes) == 5


SPECTRA = {
    **ORTHOGONAL,
    "name": "spectra",
    "dtype": "float64",
    "dataset": {**ORTHOGONAL["dataset"], "x_test": [[1.0]], "y_test": [0.5]},
    "initialization": {"kind": "balanced", "scale": 0.5},
    "optimizer": {"kind": "gd", "lr": 0.001, "iterations": 300},
    "record": {
        "snapshots": {"kind": "every", "interval": 100},
        "measures": [{"kind": "spectral_density", "probes": 3, "steps": 36}, "hessian_spectrum"],
    },
}


def test_densities_of_all_eigenvalues_and_of_some_vectors_have_the_same_support(
    trained,
):
    run = trained(SPECTRA)
    charts = {chart.title: chart for chart in curves.density(View(run), 300)}
    x, y = (
        np.asarray(one)
        for one in (charts["hessian spectrum"].lines[0].x, charts["hessian spectrum"].lines[0].y)
    )
    values = run.measures["hessian_spectrum"][-1]
    assert x[0] < values.min() < values.max() < x[-1]
    assert np.nansum(y) * (x[1] - x[0]) == pytest.approx(1.0, abs=0.01)
    some = charts["spectral density"].lines[0]
    last = np.asarray(some.x)[np.flatnonzero(np.nan_to_num(some.y))[-1]]
    assert last == pytest.approx(
        x[np.flatnonzero(np.nan_to_num(y))[-1]], rel=0.02
    )  # ends are not rough
    assert [chart.ylabel for chart in curves.measures(View(run))] == ["hessian spectrum"]


def test_numbers_are_over_positions_and_bins_over_iterations(trained):
    run = trained(
        {
            **ORTHOGONAL,
            "name": "positions",
            "backend": "torch",
            "dataset": {
                "kind": "in_context_regression",
                "n": 6,
                "context": 2,
                "eigenvalues": [1.0],
                "features": "interleaved",
            },
            "architecture": {"kind": "transformer", "tokens": 5, "width": 2, "predict": "every"},
            "initialization": {"kind": "lecun"},
            "optimizer": {"kind": "gd", "lr": 0.001, "iterations": 2},
            "record": {
                "measures": [
                    {"kind": "by_position"},
                    {"kind": "by_position", "of": "ridge", "bins": [1, 2, 4]},
                ]
            },
        }
    )
    over_positions, over_iterations = curves.positions(View(run))
    assert over_positions.xlabel == "position"
    assert [line.name for line in over_positions.lines] == [f"iteration {k}" for k in range(3)]
    for line, numbers in zip(
        over_positions.lines, np.asarray(run.measures["by_position_loss"]), strict=True
    ):
        assert np.array_equal([line.x, line.y], [[1, 3, 5], numbers[::2]])
    (last,) = curves.positions(View(run), 2)[0].lines
    assert last.name == "iteration 2"
    assert [line.name for line in over_iterations.lines] == ["1", "2-3", "4-"]
    for line, numbers in zip(
        over_iterations.lines, np.transpose(run.measures["by_position_ridge"]), strict=True
    ):
        assert np.array_equal(line.columns[:, 0], numbers)
    assert "positions" in [panel.name for panel in panels_of(run)]
    assert not drawn_measures(run)


def test_stars_stand_at_kinks(write, layer):
    run = write([1.0], {0: layer})
    places, outputs = neurons(View(run), 0)
    assert places == pytest.approx([-1.0, 2.0])
    assert outputs == pytest.approx([np.sqrt(2), -np.sqrt(45)])
    axes, twin = draw_panel(run, "function", 0).axes
    stars = next(line for line in twin.lines if line.get_marker() == "*")
    assert stars.get_xydata() == pytest.approx(np.array([[-1.0, np.sqrt(2)], [2.0, -np.sqrt(45)]]))
    assert "outside" not in axes.get_xlabel()


def by_neuron(chart):
    return sorted(np.concatenate([line.columns[-1] for line in chart.lines]))


def test_norms_of_every_neuron_and_layer(orthogonal, deep):
    (chart,) = curves.norms_over_training(View(orthogonal))
    assert by_neuron(chart) == pytest.approx(
        sorted(norms(np.asarray(orthogonal.parameters["hidden_weight"])[-1]))
    )
    assert chart.log_y
    (chart,) = curves.norms_over_training(View(deep))
    assert [line.name for line in chart.lines] == ["$W_{1}$", "$W_{2}$", "$W_{3}$"]
    for number, line in enumerate(chart.lines, start=1):
        W = np.asarray(deep.parameters[f"weight_{number}"], dtype=float)
        assert line.y == pytest.approx(np.sqrt((W**2).sum(axis=(1, 2))))


def test_directions_in_space_are_cosines(cube):
    leading, mean = curves.directions_of_neurons(View(cube))
    W = cube.state(-1)["hidden_weight"].astype(float)
    data = cube.dataset()
    assert by_neuron(mean) == pytest.approx(sorted(cosines(W, data.y @ data.x)))
    assert by_neuron(leading) == pytest.approx(sorted(cosines(W, np.linalg.svd(W)[2][0])))


def test_spectra_and_stable_ranks_of_every_layer(deep):
    *spectra, ranks = curves.spectra(View(deep))
    for number, (chart, rank) in enumerate(zip(spectra, ranks.lines, strict=True), start=1):
        W = np.asarray(deep.parameters[f"weight_{number}"], dtype=float)
        values = np.linalg.svd(W, compute_uv=False)
        assert np.column_stack([line.columns for line in chart.lines]) == pytest.approx(values)
        assert rank.y == pytest.approx(stable_rank(W))
    assert [line.name for line in spectra[1].lines] == [
        *(rf"$\sigma_{{{k}}}$" for k in (1, 2, 3)),
        "others",
    ]


PIXELS = np.random.default_rng(0).standard_normal((6, 36)).tolist()
NETWORKS = {
    "residual": {"width": 5},
    "convolutional": {
        "image": [1, 6, 6],
        "convolutions": [[3, 3, 1, 1], [4, 2, 2, 0]],
        "widths": [5],
    },
    "vgg16": {"image": [1, 6, 6], "width_multiplier": 1 / 64},
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_norms_and_spectra_of_every_kind_of_layers(kind, trained):
    run = trained(
        {
            "name": kind,
            "dataset": {
                "kind": "points",
                "x": PIXELS,
                "y": [1, 1, 1, -1, -1, -1],
                "append_bias": False,
            },
            "architecture": {"kind": kind, **NETWORKS[kind]},
            "initialization": {"kind": "default_scaled"},
            "loss": {"kind": "logistic"},
            "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 4},
            "record": {"snapshots": {"kind": "every", "interval": 1}, "measures": []},
        }
    )
    assert [panel.name for panel in panels_of(run)] == ["loss", "norms", "spectrum"]
    names = [
        f"weight_{layer}"
        for layer in range(1, 1 + sum("weight" in name for name in run.parameters))
    ]
    weights = [run.parameters[name][-1] for name in names]
    (chart,) = curves.norms_over_training(View(run))
    assert [line.columns[-1, 0] for line in chart.lines] == pytest.approx(
        [np.linalg.norm(W) for W in weights]
    )
    for spectrum, W in zip(curves.spectra(View(run)), weights, strict=False):  # a kernel is a row
        assert spectrum.lines[0].columns[-1, 0] == pytest.approx(
            np.linalg.norm(W.reshape(len(W), -1), 2), rel=1e-6
        )
