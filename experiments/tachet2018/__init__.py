"""Tachet des Combes et al. (2018): learning dynamics under cross-entropy and hinge loss,
gradient starvation.
"""
