"""Gradient flow itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from dynamics_cli.kinds import Clock, Finding, Floats, Optimizer, Positive, PositiveInt, Sections


class GradientFlow(Optimizer, kind="gradient_flow"):
    """Gradient flow `theta' = -grad L` itself, integrated with adaptive steps.

    State i is the flow at time `t_i`.

    Kinks of the activation are not located: a step in which a neuron changes its activation is
    shortened until it meets the tolerance, so with kinks the number of steps grows as `1 / rtol`.

    What the flow conserves is imposed, not integrated: in a plain two-layer network with a
    homogeneous activation whose neurons start with `|a| >= ||w||`, the output weight is `a = sign
    a(0) sqrt(||w||^2 + a(0)^2 - ||w(0)||^2)` at each state (Boursier et al. 2022, Lemma 1). The
    balance of such a run and the signs of its output weights measure nothing; look at them on
    descent. Factors that differ have no such law, and negative ones, of `dyn audit`, keep it.
    """

    is_flow = True
    example = "{kind: gradient_flow, until: 10.0, points: 1000}"
    titles: ClassVar[Mapping[str, str]] = {"until": "time of the end"}
    until: Positive
    """Time `t_N` of the last state; gradient descent with step lr takes `until / lr` iterations
    for it.
    """
    points: PositiveInt = 2000
    """Number N of states after the initial one; their choice does not change the integration."""
    spacing: Literal["uniform", "geometric"] = "uniform"
    """`t_i = i until / N`, or `t_1 = first` and a constant ratio from there on."""
    first: Positive | None = None
    """Time `t_1` (geometric spacing only)."""
    layer_lr: dict[str, float] | None = None
    """Factors of the gradients, `theta' = -factor grad L`, by the names of weights, as for `gd`."""
    rtol: Annotated[float, Field(ge=1e-12, le=0.5)] = 1e-5
    """Local error allowed in a step, relative to the size of each neuron."""

    def count(self, steps_per_epoch: int) -> int:
        """Return the number N of states after the initial one."""
        return self.points

    def times(self) -> Floats:
        """Return the times (N + 1,) of states 0..N."""
        N = self.points
        until = self.until
        if self.spacing == "geometric" and self.first is not None and N > 1:
            times = np.concatenate([[0.0], np.geomspace(self.first, until, N)])
        else:
            times = np.arange(N + 1) * (until / N)
        times[-1] = until
        return times

    def clock(self, iterations: int) -> Clock:
        """Return the times of the states."""
        return Clock(self.times())

    def advice(self) -> str:
        """Return why the flow cannot diverge by itself."""
        return "Gradient flow never raises the loss: the initial weights or the data are too large"

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield whether `first` fits the spacing."""
        if self.spacing == "geometric" and self.first is None:
            yield (
                ("optimizer", "first"),
                "is missing; geometric spacing needs the time of the first point",
            )
        if self.spacing == "uniform" and self.first is not None:
            yield ("optimizer", "first"), "belongs to spacing geometric, not to uniform"
        if self.first is not None and self.first >= self.until:
            yield (
                ("optimizer", "first"),
                f"must be below until = {self.until:g}, not {self.first:g}",
            )
