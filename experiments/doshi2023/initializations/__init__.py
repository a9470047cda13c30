"""Initial weights that only this paper needs."""
