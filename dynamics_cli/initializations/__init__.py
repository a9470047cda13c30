"""Laws of the first weights as kinds, drawn in float64 from the initialisation stream of the seed.

`Problem.initial_parameters` calls `draw`. Begin with `scaled.py`, then `matrices.py`.
"""
