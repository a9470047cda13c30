"""Tests of closed forms, ODEs and convex programs."""
