"""The records that units read: each field once, with its type and what it is.

Python writes them by name (`layout.py`, `curvature.py`, `training/steppers/layers.py`), units read
attributes. Names of shapes: n samples, L layers of m_l outputs, N = sum of all m_l, P weights, R
replicas.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from dynamics_cli.formulas.native import Structure

Layer: TypeAlias = Any
Network: TypeAlias = Any
Task: TypeAlias = Any
Tangents: TypeAlias = Any

LAYER = Structure(
    "Layer",
    [
        ("inputs", "int", "columns of what the layer takes"),
        ("outputs", "int", "columns of what it gives"),
        ("weight", "int", "where W (inputs, outputs) begins among the weights"),
        ("bias", "int", "where b (outputs,) begins; -1: the layer has none"),
        ("skip", "int", "whether the preactivations of the layer below are added to its own"),
    ],
)

NETWORK = Structure(
    "Network",
    [
        ("loss_and_gradient", "Address", "of layers, or of diagonal networks"),
        ("forward_layer", "Address", ""),
        ("backward_layer", "Address", ""),
        ("weight_gradient", "Address", ""),
        ("product", "Address", "of two matrices"),
        ("dots", "Address", "product of a matrix and a vector"),
        ("loss", "Address", "losses and their derivatives"),
        ("loss_numbers", "Floats", "the numbers of the loss's formula"),
        ("layers", "Layer", "(L,)"),
        ("layer_count", "int", "L"),
        ("lowest", "int", "the first layer that is trained"),
        ("depth", "int", "D of a diagonal network"),
        ("columns", "int", "d, inputs of a sample"),
        ("output_scale", "float", "s in s (z_L - base); 0: `base` becomes the outputs"),
        ("activations", "Reals", "(N n,) z_l, then h_l, layer by layer"),
        ("deltas", "Reals", "(N n,) dF/dz_l"),
        ("derivatives", "Reals", "(N n,) sigma'(z_l); may be `deltas`, which then begin as sigma'"),
        ("second_derivatives", "Reals", "(N n,) sigma''(z_l), then sigma'' dF/dh_l"),
        ("keeps_derivatives", "int", "whether `derivatives` and `deltas` are two arrays"),
        ("scratch", "Reals", "(`Layout.scratch`,)"),
    ],
)

TASK = Structure(
    "Task",
    [
        ("network", "Network", ""),
        ("first_replica", "int", "of this call"),
        ("last_replica", "int", "the one after its last"),
        ("x", "Reals", "(R or 1, n, columns)"),
        ("y", "Reals", "(R or 1, n, labels)"),
        ("base", "Reals", "(R or 1, n, outputs) subtracted from the outputs"),
        ("x_step", "int", "numbers from replica to replica; 0: shared"),
        ("y_step", "int", ""),
        ("base_step", "int", ""),
        ("samples", "int", "n"),
        ("labels", "int", "numbers that a label has"),
        ("outputs", "int", ""),
        ("sample_weight", "float", "of a sample in the loss"),
        ("mean", "int", "whether it is divided by the samples of a batch"),
        (
            "gradients",
            "int",
            "whether gradients are computed; 0: losses alone, where `levels` are infinite",
        ),
        ("count", "int", "updates of this call"),
        ("iteration", "int", "of its first update"),
        ("rates", "Floats", "(R, count) step sizes"),
        ("losses", "Floats", "(R, count), written"),
        ("done", "Ints", "(R,) updates until a replica halted, written"),
        ("levels", "Floats", "(R,) losses at which a replica halts"),
        ("full_batch", "int", "1: every batch has all samples, and losses are recorded"),
        (
            "batch_ends",
            "Ints",
            "(count + 1,) samples `batch_ends[t]` to `batch_ends[t + 1]` are batch t",
        ),
        ("theta", "Reals", "(R, P) weights"),
        ("memory", "Reals", "(R, slots, P) the optimizer's"),
        ("slots", "int", ""),
        ("weights", "int", "P"),
        ("activation_units", "Ints", "(R,) addresses; 0: identity"),
        (
            "activation_numbers",
            "Floats",
            "(R, activation_numbers_step) the numbers of their formulas",
        ),
        ("activation_numbers_step", "int", ""),
        ("update", "Address", "of the optimizer"),
        ("update_numbers", "Floats", "the numbers of its formula"),
        (
            "segments",
            "Ints",
            "(S + 1, 3) where trained tensors begin and end, and from where their updates count;"
            " last of the network as a whole",
        ),
        ("segment_count", "int", "S"),
        ("rate_factors", "Floats", "(S,) by which the step of a segment is multiplied"),
        ("gradient", "Reals", "(P,)"),
        (
            "watch",
            "Address",
            "(watching, weights) -> 0, or 1: end the call; 0: no state is watched",
        ),
        ("watching", "Floats", "its first argument"),
        ("due", "Ints", "(K + 1,) the states that are watched, ascending; -1 after the last"),
    ],
)

TANGENTS = Structure(
    "Tangents",
    [
        (
            "network",
            "Network",
            "evaluated at the state: activations, deltas and both derivatives are there",
        ),
        ("loss_curvature", "Address", "product with the second derivative of the loss"),
        ("samples", "int", "n"),
        ("sample_weight", "float", ""),
        ("x", "Floats", "(n, columns)"),
        ("y", "Floats", "(n, labels)"),
        ("theta", "Floats", "(P,)"),
        ("trained", "int", "weights that are trained"),
        ("places", "Ints", "(trained,) where they stand among all"),
        ("direction", "Floats", "(P,) what the Hessian is multiplied by"),
        ("result", "Floats", "(P,) the product"),
        ("tangent_z", "Floats", "(N n,) dz_l along the direction"),
        ("tangent_h", "Floats", "(N n,) dh_l along it"),
        ("tangent_deltas", "Floats", "(N n,) d(dF/dz_l) along it"),
    ],
)
