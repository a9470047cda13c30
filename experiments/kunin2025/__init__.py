"""Kunin et al. (2025): alternating gradient flows, a theory of the saddles that small networks
pass one by one.
"""
