"""Data sets that only this paper needs."""
