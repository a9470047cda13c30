"""Time of measures of a training loop of torch, run by hand: `python benchmarks/overheads.py`.

A language model of about 100 000 weights, 100 updates of AdamW, and `dyn.Recorder` with one measure
at every tenth state. The loop alone and with each measure run in turns, one thread; of each the
fastest turn counts, in seconds of the processor. A ratio is the time with the measure over the time
of the loop alone, and holds state 0 and the first call. `--only NAME ...` times some measures,
`--turns N` takes more turns.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from compare import machine
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import dynamics_cli as dyn

UPDATES = 100
EVERY = 10
CHARACTERS = 64
LENGTH = 32
WIDTH = 64
BATCH = 32
"""Sequences of an update."""
MEASURED = 16
"""Sequences that measures take."""
MEASURES: dict[str, Any] = {
    "recorder alone": "train_loss",
    "gradient_norm": "gradient_norm",
    "sharpness": "sharpness",
    "sharpness to 1e-3": {"kind": "sharpness", "tolerance": 1e-3},
    "preconditioned_sharpness": "preconditioned_sharpness",
    "smallest_eigenvalue": "smallest_eigenvalue",
    "smallest_eigenvalue to 1e-3": {"kind": "smallest_eigenvalue", "tolerance": 1e-3},
    "batch_sharpness": {"kind": "batch_sharpness", "batch_size": 8, "batches": 10},
    "update, norm": "update",
    "update, cosine with the gradient": {"kind": "update", "of": "cosine_gradient"},
    "directional_sharpness": "directional_sharpness",
    "critical_lr": "critical_lr",
    "activations, mean": {"kind": "activations", "modules": ["blocks.*.gelu"]},
    "activations, stable rank": {
        "kind": "activations",
        "of": "stable_rank",
        "modules": ["blocks.*.gelu"],
    },
    "dead_units": {"kind": "dead_units", "modules": ["blocks.*.gelu"]},
}


class Block(nn.Module):
    """Causal attention and two layers, each beside a residual path."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.between = nn.LayerNorm(WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.gelu = nn.GELU()
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, h: Tensor) -> Tensor:
        mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=h.device).triu(1)
        x = self.before(h)
        h = h + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return h + self.narrow(self.gelu(self.wide(self.between(h))))  # type: ignore[no-any-return]


class GPT(nn.Module):
    """Characters (n, T) -> logits (n, T, C)."""

    def __init__(self) -> None:
        super().__init__()
        self.characters = nn.Embedding(CHARACTERS, WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.last = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CHARACTERS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = self.characters(x) + self.places
        return self.head(self.last(self.blocks(h)))  # type: ignore[no-any-return]


def chains(count: int) -> Tensor:
    """Return sequences (count, LENGTH + 1) of characters, each drawn given the one before."""
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(CHARACTERS, CHARACTERS, generator=generator).mul(2).softmax(1)
    steps = [torch.randint(CHARACTERS, (count,), generator=generator)]
    for _ in range(LENGTH):
        steps.append(torch.multinomial(table[steps[-1]], 1, generator=generator)[:, 0])
    return torch.stack(steps, 1)


def seconds(data: Tensor, measure: Any, directory: Path) -> float:
    """Return the processor time of the loop, recorded with a measure where one is given."""
    torch.manual_seed(0)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = data[:, :-1]
    y = data[:, 1:]
    began = time.process_time()
    recorder = None
    if measure is not None:
        recorder = dyn.Recorder(
            directory,
            model,
            x[:MEASURED],
            y[:MEASURED],
            optimizer=optimizer,
            measures=[measure],
            every=EVERY,
            force=True,
            dtype="float32",
        )
    for k in range(UPDATES):
        batch = slice(k * BATCH, (k + 1) * BATCH)
        loss = cross_entropy(model(x[batch]).flatten(0, 1), y[batch].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if recorder is not None:
            recorder.step(loss=loss)
    if recorder is not None:
        recorder.close()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=MEASURES)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    names = given.only or list(MEASURES)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    data = chains(UPDATES * BATCH)
    weights = sum(weight.numel() for weight in GPT().parameters())
    print(f"{machine()}; {weights} weights", flush=True)
    alone = []
    measured: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as place:
        for turn in range(given.turns):
            alone.append(seconds(data, None, Path(place)))
            for name in names:
                measured[name].append(seconds(data, MEASURES[name], Path(place) / "run"))
                if turn == given.turns - 1:
                    print(f"| {name} | {min(measured[name]) / min(alone):.2f} |", flush=True)


if __name__ == "__main__":
    main()
