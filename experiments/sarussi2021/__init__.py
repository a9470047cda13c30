"""Sarussi, Brutzkus and Globerson (2021), Towards Understanding Learning in Neural Networks with
Linear Teachers.
"""
