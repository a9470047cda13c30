"""Animations: the file, its frames and their states, and what cannot move."""

import numpy as np
import pytest
from PIL import Image

from dynamics_cli.analysis.animation import animate_run


@pytest.fixture(autouse=True)
def few_frames(monkeypatch):
    monkeypatch.setattr("dynamics_cli.analysis.animation.FRAMES", 7)


def test_a_gif_of_the_recorded_states(orthogonal, tmp_path):
    run = orthogonal
    told = []
    file = animate_run(run, tmp_path / "moving.gif", lambda done, of: told.append((done, of)))
    assert told == [(k, len(told)) for k in range(1, len(told) + 1)]
    assert 3 < len(told) <= 7
    with Image.open(file) as picture:
        assert 2 < picture.n_frames <= len(told)  # equal pictures are one frame
        first = np.asarray(picture.convert("RGB")).astype(int)
        picture.seek(picture.n_frames - 1)
        moved = np.abs(first - np.asarray(picture.convert("RGB"))).max(axis=2) > 60
    middle = moved.shape[1] // 2
    assert moved[40:, :middle].sum() > 200  # the network
    assert 20 < moved[40:, middle:].sum() < 600  # only the marker on the loss


@pytest.mark.parametrize("losses", [[], [1.0, 1e30, np.inf]])
def test_a_run_moves_up_to_its_last_finite_state(losses, write, layer, tmp_path):
    broken = {name: np.multiply(value, np.nan) for name, value in layer.items()}
    run = write(losses, {0: layer, 1: layer, 2: broken}, status="diverged" if losses else None)
    file = animate_run(run, tmp_path / "moving.gif")
    with Image.open(file) as picture:
        assert picture.n_frames == 2
