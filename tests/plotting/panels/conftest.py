import pytest

from dynamics_cli.plotting.style import new_figure


@pytest.fixture
def axes():
    """Axes of a figure that is drawn in the end."""
    figure, axes = new_figure()
    yield axes[0]
    figure.draw_without_rendering()
