"""What the initialisation `independent_modes` asks of a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dynamics_cli.config.architecture import FullyConnectedArchitecture, TwoLayerArchitecture
from dynamics_cli.config.errors import Path
from dynamics_cli.config.initialization import IndependentModesInitialization


def check_modes(sections: Mapping[str, object]) -> Iterator[tuple[Path, str]]:
    """Yield what independent modes need of the network: neurons that match its widths, and neither bias nor slope."""
    initialization, architecture = sections.get("initialization"), sections.get("architecture")
    if not isinstance(initialization, IndependentModesInitialization):
        return
    counts = [len(neurons) for neurons in initialization.y]
    if counts != [len(neurons) for neurons in initialization.z]:
        yield ("initialization", "z"), "must have lists of the same lengths as y"
    if not isinstance(architecture, TwoLayerArchitecture | FullyConnectedArchitecture):
        return
    outputs = getattr(architecture, "outputs", 1)
    classes = 2 if outputs == 1 else outputs
    if len(counts) != classes:
        yield ("initialization", "y"), f"must have one list for each of {classes} classes, not {len(counts)}"
    if architecture.activation != "relu":
        yield ("architecture", "activation"), "must be relu for the initialization independent_modes"
    if isinstance(architecture, TwoLayerArchitecture):
        widths, key = [architecture.width], "width"
    else:
        widths, key = architecture.widths, "widths"
        if architecture.bias:
            yield ("architecture", "bias"), "must be false for the initialization independent_modes"
    if set(widths) != {sum(counts)}:
        yield ("architecture", key), f"must be {sum(counts)}, the number of neurons in initialization.y"
