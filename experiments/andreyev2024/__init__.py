"""Andreyev, Beneventano (2024): SGD trains where the curvature of batches is 2/eta."""
