from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from dynamics_cli.analysis.picture import save_figure
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.plotting.chart import Chart, Line, draw_chart
from dynamics_cli.plotting.panels.neurons import RaysData, rays_scene
from dynamics_cli.plotting.scene import draw_scene
from dynamics_cli.plotting.style import PALETTE, new_figure, settle, style
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.manifest import MANIFEST

ROOT = Path(__file__).resolve().parents[2]
FORMATS = ("pdf", "png", "svg")

# Machado et al. 2009, severity 1
DEUTERANOPIA = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.011820, 0.042940, 0.968881],
]
PROTANOPIA = [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
]


def figure_of_rays():
    figure, axes = new_figure(2)
    weights = np.array([[1.0, 0.5], [-1.0, 0.0]])
    signs = np.array([1.0, -1.0])
    data = RaysData(np.array([[1.0, 0.0]]))
    draw_scene(axes[0], rays_scene(lambda _: weights, lambda _: signs, 1.5, data=data), 0)
    draw_chart(
        axes[1], Chart(lines=[Line(x=[0, 1, 2], y=[1.0, 0.5, 0.25])], ylabel="loss", log="y")
    )
    return figure


def test_style_is_undone_afterwards_and_ignores_the_users_settings():
    with mpl.rc_context({"font.size": 31, "lines.linewidth": 9}):
        with style():
            assert mpl.rcParams["font.size"] == 8
            assert mpl.rcParams["pdf.fonttype"] == 42
        assert mpl.rcParams["font.size"] == 31
        assert mpl.rcParams["lines.linewidth"] == 9


def test_save_writes_every_format_and_keeps_dots_in_the_name(tmp_path):
    paths = save_figure(figure_of_rays(), tmp_path / "new" / "scale-0.1", FORMATS)
    assert paths == [tmp_path / "new" / f"scale-0.1.{name}" for name in FORMATS]
    starts = [path.read_bytes()[:5] for path in paths]
    assert starts == [b"%PDF-", b"\x89PNG\r", b"<?xml"]
    assert {*(tmp_path / "new").iterdir()} == {*paths, tmp_path / "new" / MANIFEST}
    assert b"CreationDate" not in paths[0].read_bytes()
    assert b"/Type3" not in paths[0].read_bytes()


def test_settle_fixes_a_layout_that_keeps_everything_inside_the_figure():
    figure = figure_of_rays()
    boxes = settle(figure)
    figure.draw_without_rendering()
    for axes, box in zip(figure.axes, boxes, strict=True):
        assert axes.get_position(original=True).extents == pytest.approx(box.extents, abs=0)
        extent = axes.get_tightbbox().extents
        assert min(extent[:2]) >= 0
        assert extent[2] <= figure.bbox.x1
        assert extent[3] <= figure.bbox.y1


def test_an_unknown_format_is_a_usage_error_before_anything_is_written(tmp_path):
    with pytest.raises(
        UsageError,
        match=r"no picture format 'pgn': choose from pdf, png, svg \(did you mean 'png'\?\)",
    ):
        save_figure(figure_of_rays(), tmp_path / "f", ["pdf", "pgn"])
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    figure = figure_of_rays()
    (old,) = save_figure(figure, tmp_path / "f", ["png"])
    contents = old.read_bytes()

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_at", fail)
    with pytest.raises(RunError, match=r"disk full while writing .*f\.png"):
        save_figure(figure, tmp_path / "f", ["png"])
    assert {*tmp_path.iterdir()} == {old, old.with_name(MANIFEST)}
    assert old.read_bytes() == contents


@pytest.mark.parametrize("matrix", [np.eye(3), DEUTERANOPIA, PROTANOPIA])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("positive", "negative"),
        ("function", "neurons"),
        ("data", "neurons"),
        ("function", "negative"),
        ("theory", "measured"),
    ],
)
def test_colours_that_meet_stay_apart_for_colour_blind_eyes(matrix, first, second):
    seen = [
        np.clip(np.asarray(matrix) @ np.asarray(to_rgb(getattr(PALETTE, role))), 0, 1)
        for role in (first, second)
    ]
    assert np.linalg.norm(seen[0] - seen[1]) > 0.25
