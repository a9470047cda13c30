"""Phuong and Lampert (2021), The inductive bias of ReLU networks on orthogonally separable data."""
