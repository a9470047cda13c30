"""Samples that would do harm: each is shown to do it with a naive reader, and then not to do it
with ours.
"""
