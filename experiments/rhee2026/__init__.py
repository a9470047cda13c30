"""Rhee, Simon and Karkada (2026): Muon learns balanced solutions of matrix factorization."""
