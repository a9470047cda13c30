"""Hypothesis draws configs, archives of arrays and tables: each is taken, or refused in one
message.
"""
