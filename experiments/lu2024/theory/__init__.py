"""Theory that only this paper needs."""
