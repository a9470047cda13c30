"""The parts of the papers' figures, under a single name: `from dynamics_cli import kit`.

Measures of networks and curves, panels and the style of pictures, and the claims, all that two
papers or more use; what only one of them needs is imported from its own module, or lives beside the
figure.
"""

# isort: off
from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dynamics_cli.errors import InputError
from dynamics_cli.measures.two_layer import activation_patterns
from dynamics_cli.measures.arrays import Bools, Floats, Ints
from dynamics_cli.measures.clusters import Clusters, cluster_directions, significant
from dynamics_cli.measures.curves import (
    Plateau,
    crossing,
    farthest,
    find_plateaus,
    first_at,
    first_below,
    power,
    value_at,
)
from dynamics_cli.measures.neurons import angle_of, cosines, directions, kinks, norms, signs
from dynamics_cli.measures.spectra import leading_directions, project, singular_values, stable_rank
from dynamics_cli.plotting.time_axis import decimate
from dynamics_cli.plotting.labels import (
    figure_legend,
    format_number,
    panel_label,
    panel_labels,
    place_legend,
    set_axis_label,
)
from dynamics_cli.plotting.chart import Chart, Level, Line, draw_chart
from dynamics_cli.plotting.panels.neurons import round_up, sign_handle
from dynamics_cli.plotting.panels.table import table_figure
from dynamics_cli.plotting.shared import (
    DASHED,
    chart,
    charts,
    entry,
    labelled,
    level,
    line,
    lines,
    panel,
    stairs,
    upright,
)
from dynamics_cli.plotting.style import (
    COLUMN_WIDTH,
    MARKER,
    PALETTE,
    SERIES,
    SMALL,
    TEXT_WIDTH,
    new_figure,
    styled,
)
from dynamics_cli.plotting.time_axis import draw_curve, set_time_axis, set_value_axis
from dynamics_cli.reproduction.claims import (
    Claim,
    Interval,
    around,
    at_least,
    at_most,
    claim,
    exactly,
    given,
    less_than,
    more_than,
    most,
    near,
    presupposing,
    printed,
    theory,
    undecided,
)
from dynamics_cli.reproduction.figure import (
    Figure,
    Runs,
    Variant,
    Wanted,
    by_id,
    by_values,
    grid,
)
from dynamics_cli.reproduction.reading import in_double, recorded
from dynamics_cli.runs.run import Run
