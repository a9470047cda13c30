"""Figure 5 left and Table 2 of Tachet des Combes et al. 2018, on tiny settings; the digits as
they are.
"""

import json

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.tachet2018.fig5_gan import energy_distance
from dynamics_cli._bundled.experiments.tachet2018.light import printed_claim
from PIL import Image

from dynamics_cli.datasets.files.dogs_vs_cats import add_dogs_vs_cats
from dynamics_cli.errors import DataMissingError
from dynamics_cli.reproduction.reproduce import reproduce

TINY_VGG = (
    "architecture.width_multiplier=0.015625",
    "optimizer.epochs=1",
    "optimizer.batch_size=4",
)


@pytest.fixture
def cats_and_dogs(tmp_path, monkeypatch):
    """Add twelve noisy images of each class."""
    monkeypatch.setenv("DYN_DATA", str(tmp_path / "data"))
    rng = np.random.default_rng(0)
    folder = tmp_path / "train"
    folder.mkdir()
    for kind in ("cat", "dog"):
        for k in range(12):
            Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(
                folder / f"{kind}.{k}.jpg"
            )
    add_dogs_vs_cats(folder)


@pytest.mark.long
def test_digits_learn_the_light_and_nothing_else(tmp_path):
    fewer = (
        "dataset.per_class=200",
        "dataset.test_per_class=100",
        "optimizer.batch_size=8",
        "optimizer.epochs=3",
    )
    result = reproduce("tachet2018-table2-digits", overrides=fewer, out=tmp_path, formats=("png",))
    claims = {one.id: one for one in result.claims}
    assert {
        id_: claims[id_].verdict for id_ in ("train", "test", "fails", "starved")
    } == dict.fromkeys(("train", "test", "fails", "starved"), "reproduced")
    assert [row[0] for row in result.table[1]] == [
        "Training",
        "Testing",
        "Testing (untouched)",
        "Testing (untouched), control",
    ]
    assert "Paper" not in result.table[0]


def test_without_the_images_it_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_DATA", str(tmp_path))
    with pytest.raises(DataMissingError, match="dyn data add dogs-vs-cats") as told:
        reproduce("tachet2018-table2", out=tmp_path)
    assert told.value.exit_code == 4


def test_the_energy_distance_is_that_of_two_points_and_rises_with_a_collapse():
    one = np.zeros((1, 2))
    two = np.array([[3.0, 4.0]])
    assert energy_distance(one, two) == pytest.approx(10.0)
    assert energy_distance(np.concatenate([one, two]), np.concatenate([one, two])) == 0.0
    rng = np.random.default_rng(0)
    modes = rng.choice([-1.0, 1.0], (500, 2))
    spread = modes + rng.normal(0, 0.3, (500, 2))
    collapsed = np.full((500, 2), 1.0)
    assert energy_distance(spread, modes) < energy_distance(collapsed, modes)


def test_a_brightness_that_gives_another_accuracy_leaves_the_printed_one_undecided():
    assert printed_claim("Table 2", 0.5, 0.52).verdict == "undecided"
    assert printed_claim("Table 2", 0.44, 0.43).verdict == "reproduced"
    assert printed_claim("Table 2", 0.5, 0.43).verdict == "not reproduced"


@pytest.mark.usefixtures("cats_and_dogs")
def test_cats_and_dogs_become_a_table(tmp_path):
    result = reproduce("tachet2018-table2", overrides=TINY_VGG, out=tmp_path, formats=("png",))
    assert [row[1] for row in result.table[1]] == ["18", "6", "6", "6"]
    assert {one.id for one in result.claims} >= {"train", "test", "printed", "fails"}
    about = json.loads((tmp_path / "tachet2018-table2.json").read_text())
    assert about["figure"] == "tachet2018-table2"
