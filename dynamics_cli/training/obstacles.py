"""Errors of torch, and of foreign models and losses, in one line."""

from __future__ import annotations

LONGEST = 200
"""Characters of a foreign error that a message repeats."""


def told(error: BaseException) -> str:
    """Return an error in one line; of a long one, whose cause may stand last, both ends."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    if len(text) <= 2 * LONGEST:
        return text
    return f"{text[:LONGEST].rstrip()} ... {text[-LONGEST:].lstrip()}"


def torch_obstacle(error: RuntimeError) -> str:
    """Return why torch cannot compute a measure.

    Where a loss takes gradients by inputs itself, the text says what to write in its place.
    """
    if "requires_grad_()" in str(error):
        instead = "write derivatives by inputs with torch.func.grad, jvp or jacrev in its place"
        return (
            "the model or the loss calls requires_grad_(), which torch cannot map over samples:"
            f" {instead}"
        )
    return f"torch cannot give it for this network: {told(error)}"
