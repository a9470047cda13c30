"""Networks as kinds in the papers' notation; their torch modules stand in `_networks.py`.

The problem of a run asks a kind for its shapes, its torch module and, where there is one, its
function without torch. Begin with `two_layer.py`, then `activations.py`.
"""
