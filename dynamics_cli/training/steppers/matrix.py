"""The hand-derived stepper in PyTorch: matrix products in place, CPU and CUDA, one or many replicas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dynamics_cli.kinds import Problem
from dynamics_cli.memory import block_samples
from dynamics_cli.training.batches import batches_of
from dynamics_cli.training.steppers.base import Floats
from dynamics_cli.training.steppers.replay import Record, Replay, record_cuda_graph
from dynamics_cli.training.steppers.side_by_side import Weights
from dynamics_cli.training.steppers.two_layer import TwoLayerStepper

_BLOCK_BYTES = 4 * 2**20
"""Samples are taken in blocks of at most this size on a CPU, so that both products find them in the cache."""


class MatrixStepper(TwoLayerStepper):
    """Gradients by two matrix products per block of samples.

    Input columns that are 0 for every sample are left out: they add nothing to any output, so their weights never move.
    """

    backend = "matrix"

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        device: str = "cpu",
        record: Record | None = None,
    ) -> None:
        """Set up the data and the initial weights.

        Args:
            problems: one, or several of equal shapes.
            device: `cpu` or `cuda`.
            record: how full-batch updates are recorded to be replayed; by default as CUDA graphs on `cuda`, and not
                at all on `cpu`.

        """
        self.device = device
        self._record = record_cuda_graph if record is None and device == "cuda" else record
        super().__init__(problems)
        moving = np.flatnonzero(self.x.any(axis=(0, 1)))
        self._moving = torch.from_numpy(moving).to(device)
        self._x = torch.from_numpy(np.ascontiguousarray(self.x[:, :, moving])).to(device)  # (Q, n, d')
        self._y = torch.from_numpy(self.y).to(device)  # (Q, n)
        self._rate = torch.from_numpy(self.lr).to(device)[:, None, None]  # (R, 1, 1)
        self._slope = torch.from_numpy(self.alpha).to(device)[:, None, None]
        self._plain_relu = bool((self.alpha == 0).all())
        self._halts = torch.from_numpy(self.levels).to(device)
        n, columns = self._x.shape[1:]
        cached = n if device == "cuda" else max(1, _BLOCK_BYTES // max(1, columns * self.dtype.itemsize))
        self._rows = min(cached, block_samples(self._hidden.numel(), self._a.numel(), device))
        self._blocks = self._cut(n)
        self._batches = [] if self.full_batch else [batches_of(p) for p in problems]
        self._take_weights()

    def _cut(self, n: int) -> list[slice]:
        """Return the blocks of `n` samples."""
        return [slice(k, min(k + self._rows, n)) for k in range(0, n, self._rows)]

    def write(self, hidden: Weights, output: Weights) -> None:
        """Set the weights: `hidden` (R, m, d), `output` (R, m)."""
        self._hidden = torch.from_numpy(np.array(hidden)).to(self.device)  # (R, m, d); moving columns live in _W
        self._a = torch.from_numpy(np.array(output)).to(self.device)  # (R, m)
        if hasattr(self, "_moving"):
            self._take_weights()

    def _take_weights(self) -> None:
        """Lay the moving columns out for updates, which work on them and on `_a` in place."""
        self._W = self._hidden[:, :, self._moving].contiguous()  # (R, m, d')
        self._replay: Replay | None = None
        if self._record is not None:
            self._replay = Replay(lambda: self._full_update(None), (self._W, self._a), self._record)

    def read(self) -> tuple[Weights, Weights]:
        """Return copies of the weights: (R, m, d) and (R, m)."""
        self._hidden[:, :, self._moving] = self._W
        return self._hidden.cpu().numpy().copy(), self._a.cpu().numpy().copy()

    def run(self, n: int) -> tuple[Weights, NDArray[np.int64]]:
        """Do up to `n` full-batch updates; see `TwoLayerStepper.run`."""
        R = len(self.problems)
        start = (self._W.clone(), self._a.clone())
        losses = self._descend(n, [None] * R).cpu().numpy().T.copy()  # (R, n)
        halting = ~np.isfinite(losses) | (losses <= self.levels[:, None])
        done = np.where(halting.any(axis=1), halting.argmax(axis=1), n)
        if (done < n).any():
            # a state that halts is not updated: do the updates again, each replica up to its own halt
            self._W.copy_(start[0])
            self._a.copy_(start[1])
            self._descend(int(done.max()), [None] if R == 1 else list(done))
        return losses, done

    def run_batches(self, n: int) -> None:
        """Do `n` updates on batches."""
        for i in range(self.iteration, self.iteration + n):
            chosen = torch.from_numpy(np.stack([b.at(i) for b in self._batches])).to(self.device)  # (R, b)
            x = self._x[0][chosen] if len(self._x) == 1 else torch.stack([self._x[r][c] for r, c in enumerate(chosen)])
            y = self._y[0][chosen] if len(self._y) == 1 else torch.gather(self._y, 1, chosen)
            b = chosen.shape[1]
            self._update(x, y, self._cut(b), self.criterion.sample_weight(b), None)

    def _descend(self, n: int, done: Sequence[int | None]) -> Tensor:
        """Do `n` updates, of replica r only the first `done[r]` where given; return losses (n, R)."""
        losses = torch.empty((n, len(self.problems)), dtype=self._W.dtype, device=self.device)
        last = None if done[0] is None else torch.tensor(done, device=self.device)
        if last is None and self._replay is not None:
            self._replay.run(losses)
            return losses
        for t in range(n):
            losses[t] = self._full_update(None if last is None else (t < last).to(self._W.dtype))
        return losses

    def _full_update(self, active: Tensor | None) -> Tensor:
        """Do one full-batch update of the replicas that are `active` (R,), all by default; return the losses (R,)."""
        return self._update(self._x, self._y, self._blocks, self.sample_weight, active)

    def _update(self, x: Tensor, y: Tensor, blocks: Sequence[slice], weight: float, active: Tensor | None) -> Tensor:
        """Do one update from samples `x` (Q, b, d'), `y` (Q, b); return the losses (R,) before it."""
        gW, ga = torch.zeros_like(self._W), torch.zeros_like(self._a)
        loss = torch.zeros(len(self._a), dtype=self._a.dtype, device=self.device)
        for block in blocks:
            xb, yb = x[:, block], y[:, block]
            z = self._W @ xb.mT  # (R, m, b)
            slopes = (z > 0).to(z.dtype)
            if not self._plain_relu:
                slopes = slopes + self._slope * (1 - slopes)
            s = z.mul_(slopes)  # sigma(z) = z sigma'(z)
            h = (self._a[:, None, :] @ s)[:, 0]  # (R, b)
            loss += self._values(h, yb).sum(-1)
            r = self.criterion.derivatives(h, yb) * weight  # (R, b)
            ga += (s @ r[:, :, None])[:, :, 0]
            c = slopes.mul_(r[:, None, :]).mul_(self._a[:, :, None])  # (R, m, b)
            if len(gW) == 1:
                gW[0].addmm_(c[0], xb[0])
            else:
                gW += c @ xb
        loss *= weight
        rate = self._rate if active is None else self._rate * active[:, None, None]
        if self.loss_scaled:
            rate = rate / loss[:, None, None]
        if len(gW) == 1 and active is None and not self.loss_scaled:
            self._W.add_(gW, alpha=-float(self.lr[0]))
        else:
            # where a halted replica has no finite gradient, its weights must still stay as they are
            self._W.sub_((rate * gW).nan_to_num_() if active is not None else rate * gW)
        if self.train_output:
            step = rate[:, :, 0] * ga
            self._a.sub_(step.nan_to_num_() if active is not None else step)
        return loss

    def _values(self, h: Tensor, y: Tensor) -> Tensor:
        """Return the losses (R, b) of outputs `h` (R, b): as one row, since losses take (n, C) labels for vectors."""
        return self.criterion.values(h.reshape(-1), y.expand_as(h).reshape(-1)).view_as(h)  # type: ignore[no-any-return]

    def losses(self) -> Floats:
        """Return the loss of the current state of every replica, (R,), summed as `advance` does."""
        total = np.zeros(len(self.problems))
        for block in self._blocks:
            z = self._W @ self._x[:, block].mT
            s = torch.relu(z) if self._plain_relu else torch.maximum(z, z * self._slope)
            h = (self._a[:, None, :] @ s)[:, 0]
            total += self._values(h, self._y[:, block]).sum(-1).double().cpu().numpy()
        return total * self.sample_weight
