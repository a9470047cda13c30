"""How commands start: what OpenMP is told before anything loads it, and what is never loaded."""

import json

SEEN = """
import os, sys
from dynamics_cli.cli import main
main(["list", "papers", "--json"], standalone_mode=False)
print([os.environ.get("GOMP_SPINCOUNT"), os.environ.get("OMP_WAIT_POLICY"), "torch" in sys.modules])
"""


def test_waiting_threads_spin_briefly_unless_the_user_says_otherwise(shell, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    assert shell(code=SEEN).out.splitlines()[-1] == str(["7", None, False])
    monkeypatch.delenv("GOMP_SPINCOUNT")
    assert shell(code=SEEN).out.splitlines()[-1] == str(["1000", None, False])


TRAINED = """
import json, sys
from dynamics_cli.cli import main
for settings in json.loads(sys.stdin.read()):
    main(["train", "boursier2022/orthogonal", "--json", *settings], standalone_mode=False)
    print("loaded:", *sorted({"torch", "torch._dynamo", "scipy.optimize"} & set(sys.modules)))
"""
POINTS = "dataset={kind: points, x: [[1, 0.5, 2, 0], [-0.5, 1, 0, 1]], y: [1.0, -1.0]}"
DEEP = [
    "architecture={kind: fully_connected, widths: [5, 4], activation: tanh}",
    "initialization={kind: default_scaled}",
]
GD = "optimizer.iterations=100"


def test_training_imports_no_more_of_torch_than_it_needs(shell):
    """Networks of few columns, deep ones, and those in the span of the samples need none of it;
    networks of torch do not need its compiler.
    """
    common = ["record.snapshots={kind: geometric, ratio: 1.5}"]
    by_torch = [GD, "backend=torch"]
    runs = [[*common, *one] for one in ([GD], [GD, *DEEP], [GD, POINTS], by_torch)]
    plan = json.dumps([[f"--set={change}" for change in run] for run in runs])
    answer = shell(code=TRAINED, input=plan)
    assert [line for line in answer.out.splitlines() if line.startswith("loaded:")] == [
        *["loaded:"] * 3,
        "loaded: torch",
    ], answer.err
