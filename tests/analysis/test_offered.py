import shutil

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.analysis.panels import PANELS, check_panel, draw_panel, panels_of
from dynamics_cli.api import train
from dynamics_cli.errors import UsageError
from dynamics_cli.runs.run import Run

from .conftest import ORTHOGONAL

PLANE = ["rays", "norms", "directions", "spectrum"]
OVER_TRAINING = ("loss", "measures", "norms", "directions", "spectrum")


def names(run):
    return [panel.name for panel in panels_of(run)]


@pytest.mark.parametrize(
    ("fixture", "offered"),
    [
        ("orthogonal", ["loss", "function", *PLANE]),
        ("classified", ["loss", "measures", "regions", *PLANE]),
        ("cube", ["loss", *PLANE]),
        ("deep", ["loss", "measures", "norms", "spectrum"]),
        ("deep_line", ["loss", "function", "norms", "spectrum"]),
    ],
)
def test_a_run_offers_what_suits_it_and_all_of_it_can_be_drawn(fixture, offered, request):
    run = request.getfixturevalue(fixture)
    assert names(run) == offered
    assert all(panel.description == PANELS[panel.name].description for panel in panels_of(run))
    for name in offered:
        figure = draw_panel(run, name, 5 if fixture in ("cube", "deep") else None)
        if fixture in ("classified", "deep"):
            figure.draw_without_rendering()
        assert all(axes.has_data() for axes in figure.axes)


@pytest.mark.parametrize(
    ("fixture", "name", "reason"),
    [
        ("cube", "function", "it shows functions of one input, and here inputs have 5 dimensions"),
        ("deep", "function", "it shows one output, and here there are 2"),
        ("orthogonal", "measures", "no measures are recorded (see record.measures in its config)"),
        ("deep", "rays", "the hidden weights of a two-layer network are not recorded"),
        ("deep", "directions", "the hidden weights of a two-layer network are not recorded"),
    ],
)
def test_a_panel_that_is_not_offered_says_why(fixture, name, reason, request):
    run = request.getfixturevalue(fixture)
    with pytest.raises(UsageError) as caught:
        check_panel(run, name)
    assert str(caught.value).startswith(f"this run has no panel {name!r}: {reason}")
    assert str(caught.value).endswith(f"; it offers {', '.join(names(run))}")


def test_a_linear_predictor_has_its_coefficients(tmp_path):
    dataset = {"kind": "points", "x": [[1.0, 0.5, -1.0], [0.0, 2.0, 1.0]], "y": [1.0, -1.0]}
    network = {
        "architecture": {"kind": "diagonal_linear"},
        "initialization": {"kind": "constant", "scale": 0.1},
    }
    config = {
        **ORTHOGONAL,
        **network,
        "dataset": dataset,
        "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 50},
    }
    run = train(config, out=tmp_path / "run", measures=["predictor"])
    assert names(run) == ["loss", "measures", "coefficients"]
    drawn = [line.get_ydata() for line in draw_panel(run, "coefficients").axes[0].lines]
    assert_array_equal(np.transpose(drawn), run.measures["predictor"])


def test_a_run_without_parameters_offers_its_loss_only(write):
    run = write([1.0, 0.5, 0.25], {0: {}, 2: {}})
    assert names(run) == ["loss"]
    assert draw_panel(run, "loss", 1).axes[0].get_xlabel() == "iteration"
    with pytest.raises(
        UsageError, match=r"no weight matrices are recorded \(see record.parameters in its config\)"
    ):
        draw_panel(run, "norms")
    with pytest.raises(UsageError, match="not all parameters of the network are recorded"):
        draw_panel(run, "function")


def test_an_interrupted_run_is_drawn_up_to_where_it_came(write, layer):
    run = write([1.0, 0.5, 0.3], {0: layer, 2: layer}, status=None)
    assert run.status == "interrupted"
    assert names(run) == ["loss", "function", *PLANE]
    assert draw_panel(run, "function").axes[1].get_title() == "iteration 2"


def test_a_diverged_run_ends_at_its_last_finite_state(write, layer):
    huge = {name: np.multiply(value, 1e20) for name, value in layer.items()}
    broken = {name: np.multiply(value, np.nan) for name, value in layer.items()}
    run = write([1.0, 1e30, np.inf], {0: layer, 1: huge, 2: broken}, status="diverged")
    assert names(run) == ["loss", "function", *PLANE]
    for name in names(run):
        figure = draw_panel(run, name)
        figure.draw_without_rendering()
        if name not in OVER_TRAINING:
            titles = [axes.get_title() for axes in figure.axes]
            assert [title for title in titles if title] == ["iteration 0", "iteration 1"]
    low, high = draw_panel(run, "function").axes[0].get_ylim()
    assert max(-low, high) < 20  # ten times the labels, with margins: what came before can be seen


def test_data_that_have_gone_cost_only_the_panels_that_show_them(tmp_path, orthogonal):
    np.savez(tmp_path / "data.npz", x=np.array([[-0.5], [2.0]]), y=np.array([-1.0, 1.0]))
    dataset = {"kind": "file", "path": str(tmp_path / "data.npz"), "append_bias": True}
    optimizer = {"kind": "gd", "lr": 0.01, "iterations": 5}
    train({**ORTHOGONAL, "dataset": dataset, "optimizer": optimizer}, out=tmp_path / "run")
    assert names(Run(tmp_path / "run")) == ["loss", "function", *PLANE]
    shutil.move(tmp_path / "data.npz", tmp_path / "elsewhere.npz")
    run = Run(tmp_path / "run")
    assert names(run) == ["loss", *PLANE]
    for name in PLANE:
        assert draw_panel(run, name).axes
    with pytest.raises(UsageError, match="no panel 'function': its data cannot be read"):
        draw_panel(run, "function")
