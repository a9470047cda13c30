"""Boursier, Pillaud-Vivien, Flammarion (2022): gradient flow of shallow ReLU networks,
orthogonal inputs.
"""
