"""That panels show the numbers of the run."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from dynamics_cli.analysis.curves import mark_time
from dynamics_cli.analysis.panels.inputs import neurons, softmax
from dynamics_cli.analysis.panels.neurons import common_limit, plane_of, read_spectrum
from dynamics_cli.analysis.registry import draw_panel
from dynamics_cli.analysis.view import View
from dynamics_cli.measures.neurons import angle_of, cosines, norms
from dynamics_cli.measures.spectra import stable_rank
from dynamics_cli.plotting.layout import panel_label
from dynamics_cli.plotting.style import SERIES, new_figure
from dynamics_cli.runs import Run

from .conftest import Write


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def curves(axes: Axes) -> list[np.ndarray]:
    (found,) = (c for c in axes.collections if isinstance(c, LineCollection))
    return [np.asarray(segment) for segment in found.get_segments()]


def test_the_loss_is_that_of_the_run(orthogonal: Run) -> None:
    (axes,) = draw_panel(orthogonal, "loss", 700).axes
    curve = axes.lines[0].get_xydata()
    assert np.array_equal(curve, np.column_stack([orthogonal.loss_iterations, orthogonal.losses]))
    assert axes.get_yscale() == "log"
    assert "700" in texts(axes)
    assert [700, 700] in [list(line.get_xdata()) for line in axes.lines]


def test_an_iteration_beyond_the_end_marks_the_end(orthogonal: Run) -> None:
    (axes,) = draw_panel(orthogonal, "loss", 10**6).axes
    assert "1\N{THIN SPACE}500" in texts(axes)


def test_rescaled_time_has_an_axis_of_its_own(classified: Run) -> None:
    left, right = draw_panel(classified, "loss", 100).axes
    assert (left.get_xlabel(), right.get_xlabel()) == ("iteration", "time")
    assert right.lines[0].get_xdata()[-1] == pytest.approx(classified.times[-1])
    assert "it. 100" in texts(right)


def test_measures_show_accuracies_and_the_held_out_loss(classified: Run) -> None:
    accuracy, loss = draw_panel(classified, "measures").axes
    assert [line.get_label() for line in accuracy.lines[:2]] == ["training", "held-out"]
    assert accuracy.lines[1].get_ydata() == pytest.approx(classified.measures["test_accuracy"])
    assert loss.lines[1].get_ydata() == pytest.approx(classified.measures["test_loss"])
    assert loss.lines[0].get_ydata() == pytest.approx(classified.losses)
    assert accuracy.get_ylim()[1] > 1


def test_measures_of_any_name_and_shape(write: Write) -> None:
    found = {i: {"margin": 1.0 + i, "angles": np.array([1.0, 2.0, 3.0]) * i} for i in range(3)}
    figure = draw_panel(write([1.0, 0.9, 0.8], {i: {} for i in range(3)}, measures=found), "measures")
    by_label = {axes.get_ylabel(): axes for axes in figure.axes}
    assert set(by_label) == {"margin", "angles"}
    assert by_label["margin"].lines[0].get_ydata() == pytest.approx([1, 2, 3])
    assert len(by_label["angles"].lines) == 3


def test_what_a_panel_of_measures_leaves_out_it_says(write: Write) -> None:
    found = {i: {"many": np.arange(30.0) + i, "lost": np.nan} for i in range(3)}
    many, lost = draw_panel(write([1.0], {i: {} for i in range(3)}, measures=found), "measures").axes
    assert (len(many.lines), many.get_xlabel()) == (20, "iteration  (20 of 30 numbers)")
    assert texts(lost) == ["no finite value is recorded"]


def test_stars_stand_at_kinks(write: Write, layer: dict[str, object]) -> None:
    run = write([1.0], {0: layer})
    places, outputs = neurons(View(run), 0)
    assert places == pytest.approx([-1.0, 2.0])
    assert outputs == pytest.approx([np.sqrt(2), -np.sqrt(45)])
    axes, twin = draw_panel(run, "function", 0).axes
    stars = next(line for line in twin.lines if line.get_marker() == "*")
    assert stars.get_xydata() == pytest.approx(np.array([[-1.0, np.sqrt(2)], [2.0, -np.sqrt(45)]]))
    assert "outside" not in axes.get_xlabel()


def test_without_bias_all_kinks_are_at_zero(write: Write) -> None:
    weights = {"hidden_weight": [[1.0], [-2.0], [0.0]], "output_weight": [1.0, -1.0, 1.0]}
    dataset = {"kind": "points", "x": [[-0.5], [2.0]], "y": [-1.0, 1.0]}
    run = write([1.0], {0: weights}, dataset=dataset, architecture={"kind": "two_layer", "width": 3})
    places, outputs = neurons(View(run), 0)
    assert np.array_equal(places, [0, 0, np.nan], equal_nan=True)
    assert outputs == pytest.approx([1, -2, 0])
    line = next(line for line in draw_panel(run, "function", 0).axes[1].lines if len(line.get_xdata()) > 100)
    x, h = line.get_xydata().T
    assert h == pytest.approx(np.maximum(x, 0) - np.maximum(-2 * x, 0))


def test_states_of_a_row_share_their_axes(orthogonal: Run) -> None:
    figure = draw_panel(orthogonal, "function")
    panels, twins = figure.axes[:4], figure.axes[4:]
    assert len({axes.get_ylim() for axes in panels}) == 1
    assert len({axes.get_ylim() for axes in twins}) == 1
    assert [bool(axes.get_ylabel()) for axes in panels] == [True, False, False, False]
    assert [bool(axes.get_ylabel()) for axes in twins] == [False, False, False, True]
    assert [axes.get_title() for axes in panels][0::3] == ["iteration 0", "iteration 1\N{THIN SPACE}500"]


def test_held_out_data_are_rings(deep: Run, write: Write, layer: dict[str, object]) -> None:
    dataset = {"kind": "points", "x": [[-0.5]], "y": [1.0], "x_test": [[5.0]], "y_test": [3.0], "append_bias": True}
    axes, twin = draw_panel(write([1.0], {0: layer}, dataset=dataset), "function", 0).axes
    ring = next(line for line in twin.lines if line.get_markerfacecolor() == "white")
    assert ring.get_xydata().tolist() == [[5.0, 3.0]]
    assert axes.get_xlim()[1] > 5
    assert axes.get_ylim()[1] > 3


def test_a_deep_network_has_a_function_without_neurons(deep_line: Run) -> None:
    figure = draw_panel(deep_line, "function", 12)
    assert len(figure.axes) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["data", r"estimated function $h_\theta$"]


def test_class_probabilities(deep: Run) -> None:
    (axes,) = draw_panel(deep, "function", 12).axes
    x, share = next(line for line in axes.lines if line.get_color() == SERIES[1]).get_xydata().T
    h = deep.network(-1)(x[:, None])
    assert share == pytest.approx(1 / (1 + np.exp(h[:, 0] - h[:, 1])))


def test_softmax_is_safe() -> None:
    assert softmax(np.array([[1000.0, 1000.0], [0.0, np.log(3)]])) == pytest.approx(
        np.array([[0.5, 0.5], [0.25, 0.75]])
    )
    assert np.isnan(softmax(np.array([[np.inf, 0.0]]))).all()


def test_rays_end_at_the_weights_each_state_on_its_scale(orthogonal: Run) -> None:
    figure = draw_panel(orthogonal, "rays")
    windows = [axes.get_xlim()[1] for axes in figure.axes]
    assert windows[0] < 1e-2 < windows[-1]
    assert "[$10^{-4}$]" in figure.axes[0].get_ylabel()
    assert [axes.yaxis.get_tick_params().get("labelleft") for axes in figure.axes] == [True] * len(windows)
    assert all(axes.get_ylabel() for axes in figure.axes)
    (axes,) = draw_panel(orthogonal, "rays", 1500).axes
    ends = np.concatenate([np.asarray(c.get_segments())[:, 1] for c in axes.collections if len(c.get_segments())])
    W = orthogonal.state(-1)["hidden_weight"]
    assert np.sort(ends, axis=0) == pytest.approx(np.sort(W.astype(float), axis=0))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("weight $w_{j,1}$", "bias $w_{j,2}$")


def test_polar_projects_on_the_leading_directions_of_the_last_state(cube: Run, orthogonal: Run) -> None:
    plane, names = plane_of(View(cube))
    W = cube.state(-1)["hidden_weight"].astype(float)
    assert names == ("PC 1", "PC 2")
    assert np.sum(plane(-1) ** 2, axis=0) == pytest.approx(np.linalg.svd(W)[1][:2] ** 2)
    plane, names = plane_of(View(orthogonal))
    assert np.array_equal(plane(3), orthogonal.state(3)["hidden_weight"])


@pytest.mark.parametrize(("norm", "limit"), [(0.58, 0.8), (1.0, 1.0), (2.3, 3.0), (9e-5, 1e-4), (0.0, 1.0)])
def test_the_outer_ring_is_a_round_norm(norm: float, limit: float) -> None:
    assert common_limit([np.array([[norm, 0.0], [np.nan, 1.0]])]) == limit


def test_norms_of_every_neuron(orthogonal: Run) -> None:
    (axes,) = draw_panel(orthogonal, "norms").axes
    expected = norms(np.asarray(orthogonal.parameters["hidden_weight"]))
    lines = [segment for c in axes.collections for segment in c.get_segments()]
    assert len(lines) == 12
    assert sorted(line[-1, 1] for line in lines) == pytest.approx(sorted(expected[-1]))
    assert axes.get_yscale() == "log"


def test_norms_of_every_layer(deep: Run) -> None:
    (axes,) = draw_panel(deep, "norms", 4).axes
    labelled = [line for line in axes.lines if str(line.get_label()).startswith("$W")]
    assert [line.get_label() for line in labelled] == ["$W_{1}$", "$W_{2}$", "$W_{3}$"]
    for number, line in enumerate(labelled, start=1):
        W = np.asarray(deep.parameters[f"weight_{number}"], dtype=float)
        assert line.get_ydata() == pytest.approx(np.sqrt((W**2).sum(axis=(1, 2))))


def test_only_some_of_very_many_neurons_are_drawn(write: Write) -> None:
    rng = np.random.default_rng(0)
    wide = {"hidden_weight": rng.normal(size=(1500, 2)), "output_weight": rng.normal(size=1500)}
    run = write([1.0, 0.5], {0: wide, 1: wide}, architecture={"kind": "two_layer", "width": 1500})
    for name in ("norms", "directions"):
        (axes,) = draw_panel(run, name).axes
        assert axes.get_xlabel() == "iteration  (1000 of 1500 neurons)"
        assert sum(len(c.get_segments()) for c in axes.collections) == 1000
    _data, function, stars = sorted(draw_panel(run, "function", 0).axes[1].lines, key=lambda line: -line.get_zorder())
    assert (stars.get_marker(), len(function.get_xdata()) > 100) == ("*", True)  # the function is not buried


def test_directions_in_the_plane_are_angles_with_the_data_named(orthogonal: Run) -> None:
    (axes,) = draw_panel(orthogonal, "directions").axes
    assert texts(axes) == ["$x_{2}$", "$x_{1}$"]
    W = orthogonal.state(-1)["hidden_weight"]
    ends = [segment[-1, 1] for c in axes.collections for segment in c.get_segments()]
    assert sorted(ends) == pytest.approx(sorted(angle_of(W)))


def test_directions_in_space_are_cosines(cube: Run) -> None:
    leading, mean = draw_panel(cube, "directions", 20).axes
    assert leading.get_ylabel() == "cosine with leading direction"
    data = cube.dataset()
    expected = cosines(cube.state(-1)["hidden_weight"], data.y @ data.x)
    ends = [segment[-1, 1] for c in mean.collections for segment in c.get_segments()]
    assert sorted(ends) == pytest.approx(sorted(expected))


def test_the_spectrum_and_its_rank(cube: Run) -> None:
    spectrum = read_spectrum(View(cube), "hidden_weight")
    W = np.asarray(cube.parameters["hidden_weight"], dtype=float)
    assert np.array_equal(spectrum.iterations, cube.snapshot_iterations)
    assert spectrum.values[-1] == pytest.approx(np.linalg.svd(W[-1], compute_uv=False))
    assert spectrum.rank == pytest.approx(stable_rank(W))


def test_layers_of_zeros_have_no_rank(write: Write) -> None:
    zero = {"hidden_weight": np.zeros((2, 2)), "output_weight": np.zeros(2)}
    run = write([1.0], {0: zero})
    assert np.isnan(read_spectrum(View(run), "hidden_weight").rank).all()
    for name in ("spectrum", "polar", "rays", "norms", "directions", "function"):
        draw_panel(run, name).draw_without_rendering()


def test_spectra_of_layers_have_a_common_time_axis(deep: Run) -> None:
    figure = draw_panel(deep, "spectrum", 3)
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "iteration"]
    assert [axes.get_title(loc="left") for axes in panels] == ["(a) $W_{1}$", "(b) $W_{2}$", "(c) $W_{3}$"]
    assert len({axes.get_xscale() for axes in panels}) == 1


def test_a_mark_near_the_letter_of_a_panel_moves_aside() -> None:
    figure, (axes,) = new_figure()
    axes.set_xlim(0, 100)
    panel_label(axes, 0)
    mark_time(axes, 2, "2")
    mark_time(axes, 60, "60")
    figure.draw_without_rendering()
    letter = axes._left_title.get_window_extent()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert boxes[0].x0 > letter.x1
    assert (boxes[1].x0 + boxes[1].x1) / 2 == pytest.approx(axes.transData.transform((60, 0))[0], abs=1)
