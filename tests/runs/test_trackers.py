"""Runs in the files of other tools, read back with those tools."""

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

import dynamics_cli as dyn
from dynamics_cli.errors import UsageError
from dynamics_cli.runs.trackers import TOOLS
from tests.cases import TWO_POINTS, read

CONFIG = read(
    """
optimizer: {kind: gd, lr: 0.01, iterations: 4}
record:
  snapshots: {kind: every, interval: 2}
  measures: [weight_norm, {kind: sharpness, top: 2}]
""",
    TWO_POINTS,
)
NAMES = {"loss", "weight_norm", "sharpness.1", "sharpness.2"}
READERS = {
    "tensorboard": """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(folder)
events.Reload()
for tag in events.Tags()["scalars"]:
    found[tag] = [[event.step, event.value] for event in events.Scalars(tag)]
""",
    "wandb": """
import glob
from wandb.proto import wandb_internal_pb2
(file,) = glob.glob(f"{folder}/wandb/offline-run-*/*.wandb")
data = open(file, "rb").read()
# a log of LevelDB, of records that do not go over the ends of blocks here: 7 bytes are the head
# of the file; each record has a CRC-32, its length and its type before it
assert len(data) < 2**15
at = 7
while at < len(data):
    length = int.from_bytes(data[at + 4 : at + 6], "little")
    assert data[at + 6] == 1
    text = data[at + 7 : at + 7 + length]
    at += 7 + length
    record = wandb_internal_pb2.Record()
    record.ParseFromString(text)
    if record.WhichOneof("record_type") == "history":
        row = {}
        for item in record.history.item:
            row[item.key or ".".join(item.nested_key)] = json.loads(item.value_json)
        for name, value in row.items():
            if not name.startswith("_"):
                found.setdefault(name, []).append([row["_step"], value])
""",
    "trackio": """
import os
os.environ["TRACKIO_DIR"] = folder
import trackio
(run,) = trackio.Api().runs("dyn")
from trackio.sqlite_storage import SQLiteStorage
for row in SQLiteStorage.get_logs("dyn", run.name):
    for name, value in row.items():
        if name not in ("step", "timestamp"):
            found.setdefault(name, []).append([row["step"], value])
""",
}
BEGIN = "import json, sys\nfolder = sys.argv[1]\nfound = {}\n"
WRITE = "import sys, dynamics_cli as dyn; dyn.export(sys.argv[1], sys.argv[2], to=sys.argv[3])"


@pytest.mark.parametrize("tool", READERS)
def test_a_tool_reads_the_curves_of_a_run(tmp_path, tool):
    if find_spec(tool) is None:
        pytest.skip(f"needs the extra {tool}: pip install 'dynamics-cli[{tool}]'")
    run = dyn.train(CONFIG, out=tmp_path / "mine")
    folder = str(tmp_path / "exported")
    # processes of their own: these packages change the process that imports them
    subprocess.run([sys.executable, "-c", WRITE, str(run.path), folder, tool], check=True)
    script = f"{BEGIN}{READERS[tool]}print(json.dumps(found))"
    read = subprocess.run(
        [sys.executable, "-c", script, folder], check=True, capture_output=True, text=True
    )
    found = json.loads(read.stdout.splitlines()[-1])
    assert found.keys() == NAMES
    steps, values = zip(*found["loss"], strict=True)
    assert list(steps) == run.loss_iterations.tolist()
    assert values == pytest.approx(run.losses.tolist(), rel=1e-6)
    steps, values = zip(*found["sharpness.2"], strict=True)
    assert list(steps) == [0, 2, 4]
    assert values == pytest.approx(run.measures["sharpness"][:, 1].tolist(), rel=1e-6)


def test_each_run_of_a_sweep_has_a_place_of_its_own(tmp_path, monkeypatch):
    written = {}

    def keep(run, name, folder):
        written[str(folder.relative_to(tmp_path))] = (name, run.config.optimizer.lr)

    monkeypatch.setitem(TOOLS, "tensorboard", keep)
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))
    dyn.sweep(CONFIG, {"optimizer.lr": [0.1, 0.2]}, out=tmp_path / "s")
    for which in ("s:0", "s:1"):
        dyn.export(str(tmp_path / which), to="tensorboard")
    dyn.export(tmp_path / "s", tmp_path / "all", to="tensorboard")
    assert written == {
        "exports/tensorboard/s-0": (written["exports/tensorboard/s-0"][0], 0.1),
        "exports/tensorboard/s-1": (written["exports/tensorboard/s-1"][0], 0.2),
        "all/s-0": ("s-0", 0.1),
        "all/s-1": ("s-1", 0.2),
    }


def test_what_is_there_stays_and_tools_have_names(tmp_path):
    run = dyn.train(CONFIG, out=tmp_path / "mine")
    with pytest.raises(UsageError, match="there already"):
        dyn.export(run, tmp_path, to="tensorboard")
    with pytest.raises(UsageError, match="no tool 'tensorbord'; there are tensorboard, wandb"):
        dyn.export(run, tmp_path / "new", to="tensorbord")
    with pytest.raises(UsageError, match="ends with .csv"):
        dyn.export(run)
