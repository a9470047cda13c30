"""Interim."""

from dynamics_cli.optimizers.clocks import Clock, GridClock, RescaledClock


def build_clock(optimizer):
    return optimizer.clock(0)
