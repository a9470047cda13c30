"""Interim."""

