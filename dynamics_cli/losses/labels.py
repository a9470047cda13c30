"""What losses ask of outputs and of labels that are written in a config."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynamics_cli.config.base import Finding, Sections
from dynamics_cli.config.bases import Loss
from dynamics_cli.config.registry import all_kinds
from dynamics_cli.config.text import alternatives


def check_outputs(loss: Loss, sections: Sections) -> Iterator[Finding]:
    """Yield whether the network has one output, or for classes an output for each."""
    architecture = sections.get("architecture")
    outputs = getattr(architecture, "outputs", None)
    many = loss.labels == "classes"
    if architecture is not None and many and outputs is None and architecture.kind != "gan":
        able = [repr(name) for name, cls in all_kinds("architecture").items() if "outputs" in cls.model_fields]
        needed = f"{loss.kind} needs architecture.kind {alternatives(able)} with outputs >= 2"
        yield ("loss", "kind"), f"{needed}; {architecture.kind} has one output"
    if many and outputs == 1:
        yield ("architecture", "outputs"), f"must be the number of classes, >= 2, for the loss {loss.kind}, not 1"
    if not many and outputs is not None and outputs > 1:
        yield ("architecture", "outputs"), f"must be 1 for the loss {loss.kind}, not {outputs}"


def check_written_labels(
    loss: Loss, sections: Sections, allowed: Sequence[int] | None, names: str
) -> Iterator[Finding]:
    """Yield the first label of `y` and `y_test` that is not allowed: `names` says which are; None allows all >= 0."""
    dataset = sections.get("dataset")
    for key in ("y", "y_test"):
        labels = getattr(dataset, key, None)
        for place, label in enumerate(labels if isinstance(labels, list) else ()):
            # as an integer: a number with a point would be compared with every member of a range
            if label != int(label) or not (int(label) in allowed if allowed is not None else label >= 0):
                yield ("dataset", key, place), f"must be {names} for the loss {loss.kind}, not {label:g}"
                break
