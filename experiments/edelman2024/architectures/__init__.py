"""Networks that only this paper needs."""
