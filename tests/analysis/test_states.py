import numpy as np
import pytest

from dynamics_cli.analysis.panels import draw_panel
from dynamics_cli.analysis.states import story
from dynamics_cli.analysis.view import View


def steps(low, high, at, t):
    return low + (high - low) / (1 + np.exp((t - at) / 4))


@pytest.fixture
def told(write, layer):
    """The iterations shown of a run with these losses and all states."""

    def tell(losses, every=5):
        run = write(losses.tolist(), {int(i): layer for i in range(0, len(losses), every)})
        view = View(run)
        return [int(view.iterations[i]) for i in story(view)]

    return tell


T = np.arange(1001.0)


def test_two_plateaus_are_shown_late(told):
    first, last_before, second, end = told(steps(0.5, 1, 300, T) * steps(0, 1, 700, T))
    assert (first, end) == (0, 1000)
    assert 180 <= last_before <= 270
    assert 550 <= second <= 670


def test_one_plateau_is_shown_late(told):
    first, geometric, late, end = told(steps(0, 1, 600, T))
    assert (first, geometric, end) == (0, 100, 1000)
    assert 400 <= late <= 580


def test_the_state_shown_is_the_nearest(orthogonal):
    recorded = set(View(orthogonal).iterations.tolist())
    asked = next(i for i in range(1200, 1400) if i not in recorded and i + 1 in recorded)
    for wanted, shown in ((asked, asked + 1), (asked + 1, asked + 1), (10**9, 1500)):
        title = draw_panel(orthogonal, "rays", wanted).axes[0].get_title()
        assert title == f"iteration 1\N{THIN SPACE}{shown % 1000}"
