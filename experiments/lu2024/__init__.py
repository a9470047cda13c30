"""Lu et al. (2025): the asymptotic theory of in-context learning by linear attention."""
