"""Pictures of a sweep: which there are, and that they show its numbers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.pictures import SweepTable, draw_sweep, panels_of_sweep
from tests.sweeps.test_sweep import sweep_of


def table_of(directory, *grid, **options):
    with ThreadPoolExecutor(1) as executor:  # processes take seconds to start
        sweep_of(directory, ["optimizer.iterations=20"], grid, executor=executor, **options)
    return SweepTable(directory)


def test_two_settings_are_a_heat_map_of_means(tmp_path):
    table = table_of(tmp_path, "architecture.width=4,8", "optimizer.lr=0.01,0.02,0.03", seeds=2)
    assert list(panels_of_sweep(table)) == ["phase", "curve", "losses", "spread"]
    mesh = draw_sweep(table, "phase").axes[0].collections[0]
    means = table.column("final_loss").reshape(2, 3, 2).mean(axis=2)
    assert np.asarray(mesh.get_array()) == pytest.approx(means.T)
    (axes,) = draw_sweep(table, "curve").axes
    medians = [line.get_ydata() for line in axes.lines]
    assert np.array(medians) == pytest.approx(means.T)  # the median of two jobs is their mean
    assert axes.get_xlabel() == "architecture.width  (lines: median of 2 jobs, bands: 25-75 % and 5-95 %)"


@pytest.mark.parametrize("grid", [("architecture.width=4", "optimizer.lr=0.01,0.02"),
                                  ("optimizer.lr=0.01,0.02", "architecture.width=4")])  # fmt: skip
def test_a_grid_of_one_value_by_several_is_a_line(tmp_path, grid):
    table = table_of(tmp_path, *grid)
    assert list(panels_of_sweep(table)) == ["curve", "losses", "spread"]
    (axes,) = draw_sweep(table, "curve").axes
    assert axes.get_xlabel() == "optimizer.lr"
    assert axes.lines[0].get_xdata().tolist() == [0.01, 0.02]
    assert axes.lines[0].get_ydata() == pytest.approx(table.column("final_loss"))
    with pytest.raises(UsageError, match="no panel 'phase' here; this sweep has curve, losses, spread"):
        draw_sweep(table, "phase")


def test_one_job_alone(tmp_path):
    table = table_of(tmp_path, "architecture.width=4")
    for name in panels_of_sweep(table):
        draw_sweep(table, name).draw_without_rendering()


def test_losses_are_those_of_the_jobs(tmp_path):
    table = table_of(tmp_path, "loss.reduction=mean,sum")
    (axes,) = draw_sweep(table, "losses").axes
    assert [line.get_label() for line in axes.lines] == ["reduction mean", "reduction sum"]
    for k, line in enumerate(axes.lines):
        assert line.get_xdata() == pytest.approx(table.losses(k)[0])
        assert line.get_ydata() == pytest.approx(table.losses(k)[1])
    with pytest.raises(UsageError, match=r"no measure 'final_los' here; .*did you mean 'final_loss'"):
        draw_sweep(table, "spread", "final_los")
