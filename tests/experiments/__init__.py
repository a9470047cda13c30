"""Tests of the figures of the papers."""
