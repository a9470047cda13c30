from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dynamics_cli.analysis.animation import Stage, animate_run, choose_frames, shot_of
from dynamics_cli.analysis.view import View
from dynamics_cli.errors import UsageError
from dynamics_cli.runs import Run

from .conftest import Write


@pytest.fixture(autouse=True)
def no_ffmpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    """The MP4 is the business of `plotting.animation`."""
    monkeypatch.setattr("shutil.which", lambda name: None)


def stage_of(run: Run) -> Stage:
    view = View(run)
    return Stage(view, shot_of(view))


@pytest.mark.parametrize("fixture", ["orthogonal", "cube", "deep", "classified"])
def test_a_gif_of_the_recorded_states(fixture: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    run: Run = request.getfixturevalue(fixture)
    told: list[tuple[int, int]] = []
    (file,) = animate_run(run, tmp_path / "moving", lambda done, of: told.append((done, of)))
    assert file == tmp_path / "moving.gif"
    assert told == [(k, len(told)) for k in range(1, len(told) + 1)]
    assert 10 < len(told) <= min(len(run.snapshot_iterations), 100)
    with Image.open(file) as picture:
        assert 10 < picture.n_frames <= len(told)  # pictures that are the same are one frame


def test_a_frame_depends_on_its_state_only(orthogonal: Run) -> None:
    stage, last = stage_of(orthogonal), View(orthogonal).states - 1
    alone = stage_of(orthogonal).shoot(last)
    first = stage.shoot(0)
    assert np.array_equal(stage.shoot(last), alone)
    assert np.array_equal(stage.shoot(0), first)
    assert not np.array_equal(first, alone)


def test_the_network_is_drawn_in_front_of_what_stays(orthogonal: Run) -> None:
    stage, view = stage_of(orthogonal), View(orthogonal)
    first, last = (stage.shoot(i).astype(int) for i in (0, view.states - 1))
    moved = np.abs(first - last).max(axis=2) > 60
    middle = moved.shape[1] // 2
    assert moved[40:, :middle].sum() > 200  # the function and the neurons
    assert 20 < moved[40:, middle:].sum() < 600  # the marker of the loss only
    dark = (first < 100).all(axis=2)
    assert dark[40:, :middle].sum() > 200  # axes, labels and data of the left panel
    assert dark[40:, middle:].sum() > 200  # of the right one


def test_the_marker_moves_along_the_loss(orthogonal: Run) -> None:
    stage = stage_of(orthogonal)
    places = np.array([stage.seen(i)[-1] for i in range(View(orthogonal).states)])
    assert (np.diff(places[:, 0]) > 0).all()
    assert places[-1, 1] < places[0, 1]  # the loss has fallen
    assert (places > 0).all()
    assert (places < 1).all()


def test_a_run_without_losses_moves_too(write: Write, layer: dict[str, object], tmp_path: Path) -> None:
    run = write([], {0: layer, 1: layer}, status=None)
    (file,) = animate_run(run, tmp_path / "moving")
    with Image.open(file) as picture:
        assert picture.n_frames == 2


def test_a_diverged_run_moves_up_to_its_last_finite_state(
    write: Write, layer: dict[str, object], tmp_path: Path
) -> None:
    broken = {name: np.multiply(value, np.nan) for name, value in layer.items()}
    run = write([1.0, 1e30, np.inf], {0: layer, 1: layer, 2: broken}, status="diverged")
    (file,) = animate_run(run, tmp_path / "moving")
    with Image.open(file) as picture:
        assert picture.n_frames == 2


def test_what_cannot_move_says_why(write: Write, tmp_path: Path) -> None:
    run = write([1.0, 0.5], {0: {}, 1: {}})
    with pytest.raises(UsageError, match="nothing of this run can be animated .*not all parameters.*hidden weights"):
        animate_run(run, tmp_path / "moving")
    assert not (tmp_path / "moving.gif").exists()


def test_few_states_are_all_frames() -> None:
    assert choose_frames(10, lambda i: [np.zeros(1)], count=10) == list(range(10))


def test_frames_are_where_something_moves() -> None:
    jump = choose_frames(1000, lambda i: [np.array([np.clip((i - 600) / 50, 0, 1)])], count=100)
    assert (jump[0], jump[-1]) == (0, 999)
    assert len(jump) == 100
    assert sum(600 <= i <= 650 for i in jump) > 20  # 5 of 100 by time alone
    assert max(np.diff(jump)) < 60  # and nothing is left out for long


def test_groups_that_hardly_move_do_not_draw_frames_to_them() -> None:
    still = choose_frames(1000, lambda i: [np.array([1e-6 * np.sin(i)]), np.array([min(i / 100, 1.0)])], count=50)
    assert sum(i <= 100 for i in still) > 25


def test_positions_that_are_not_finite_do_not_move() -> None:
    frames = choose_frames(300, lambda i: [np.array([np.nan if i % 2 else 1.0, np.inf])], count=30)
    assert len(frames) == 30
