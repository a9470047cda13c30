"""Predictions of Boursier et al. 2022 for orthogonal inputs, in float64; `loss_factor` as in
`dynamics_cli.theory`.
"""
