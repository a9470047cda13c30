"""Figures of papers as programs: the runs they need, the claims they check, the picture they draw."""
