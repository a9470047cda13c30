"""Kinds of the handbook and a `lion`, beside bundled kinds of equal cost: `python benchmarks/own_kinds.py`.

Microseconds an iteration of a network of two hidden layers of 64 neurons on 50 samples of 10 columns, on the stepper
that `auto` chooses; all in turns, of each the fastest turn.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from compare import calibrate
from others import ours
from problems import deep

from dynamics_cli.config import registry
from dynamics_cli.training.backends import choose

LION = '''
class Lion(Minibatch, kind="lion"):
    """The sign of a mean of gradients (Chen et al. 2023)."""

    beta1: float = 0.9
    """Share of the mean that a step keeps."""
    beta2: float = 0.99
    """Share of it that is remembered."""

    def updated(self, w, g, memory, step):
        c = self.beta1 * memory["mean"] + (1 - self.beta1) * g
        memory["mean"] = self.beta2 * memory["mean"] + (1 - self.beta2) * g
        return w - step.lr * formulas.sign(c)
'''
PAIRS = {
    "swish, silu": ({"activation": "swish"}, {"activation": "silu"}),
    "huber, half_mse": ({"loss": "huber"}, {"loss": "half_mse"}),
    "heavy_ball, gd with momentum": ({"kind": "heavy_ball"}, {"kind": "gd", "momentum": 0.9}),
    "lion, gd with momentum": ({"kind": "lion"}, {"kind": "gd", "momentum": 0.9}),
}


def main() -> None:
    page = (Path(__file__).resolve().parents[1] / "docs/how-to/own-kinds.md").read_text()
    (source,) = re.findall(r":caption: my_parts\.py\n\n(.*?)```", page, re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "my_parts.py"
        path.write_text(source + LION)
        registry.use(path)
        print("| own, bundled | own, us | bundled, us | bundled / own |\n| --- | --- | --- | --- |")
        for name, pair in PAIRS.items():
            best = compared(*pair)
            print(f"| {name} | {best[0]:.2f} | {best[1]:.2f} | {best[1] / best[0]:.2f} |", flush=True)


def compared(*pair: dict[str, object]) -> list[float]:
    """Return the microseconds an iteration of both."""
    runs = []
    for changes in pair:
        settings = {"activation": "relu", **changes}
        problem = deep(50, 10, [64, 64], **settings)(Path())  # type: ignore[arg-type]
        runs.append(ours(problem, choose([problem]).backend))
    counts = [calibrate(run, 0.05) for run in runs]
    best = [float("inf")] * len(runs)
    for _ in range(15):
        best = [min(b, run(n) / n * 1e6) for b, run, n in zip(best, runs, counts, strict=True)]
    return best


if __name__ == "__main__":
    main()
