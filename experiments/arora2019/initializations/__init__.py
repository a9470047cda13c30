"""Initialisations that only this paper needs."""
