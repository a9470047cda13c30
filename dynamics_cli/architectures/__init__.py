"""Networks in the papers' notation, a kind a file."""
