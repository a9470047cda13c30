from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.measures.classification import sign_accuracy


def test_sign_accuracy_counts_zero_and_nan_as_wrong():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    assert sign_accuracy([0.1, -3.0, 0.0, np.nan], y) == 0.5
    assert sign_accuracy(np.array([y, -y, 0 * y]), y).tolist() == [1.0, 0.0, 0.0]


def test_bad_labels_and_lengths():
    with pytest.raises(ValueError, match="-1 or"):
        sign_accuracy([1.0], [0.0])
    with pytest.raises(ValueError, match="2 outputs for 1 labels"):
        sign_accuracy([1.0, 2.0], [1.0])
