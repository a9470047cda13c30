"""Cohen et al. (2021): gradient descent at the edge of stability; with the central flow (Cohen,
Damian et al. 2024).
"""
