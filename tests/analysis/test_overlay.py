from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynamics_cli.analysis.overlay import overlay_chart
from dynamics_cli.api import train
from dynamics_cli.errors import UsageError

from .conftest import ORTHOGONAL


def test_overlay_of_runs(tmp_path: Any) -> None:
    changes: dict[str, Any] = {"optimizer.iterations": 20}
    scales = (0.5, 0.8, 0.8)
    runs = [
        train(ORTHOGONAL, {**changes, "initialization.scale": s}, out=tmp_path / str(k))
        for k, s in enumerate(scales)
    ]
    chart = overlay_chart(runs)
    np.testing.assert_array_equal(chart.lines[1].columns[:, 0], runs[1].losses)
    assert [line.name for line in chart.lines] == ["scale 0.5", "2: scale 0.8", "3: scale 0.8"]
    with pytest.raises(UsageError, match="no measure 'sharp'.*it has loss"):
        overlay_chart(runs, "sharp")
