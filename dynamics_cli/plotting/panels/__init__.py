"""One reusable panel a file."""
