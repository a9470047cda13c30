"""Reusable panels: arrays in, artists out."""
