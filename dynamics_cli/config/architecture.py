"""Interim names."""

