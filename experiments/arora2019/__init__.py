"""Arora et al. (2019): implicit regularization in deep matrix factorization."""
