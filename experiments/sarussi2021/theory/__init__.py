"""What Sarussi et al. 2021 define and predict for networks with a fixed second layer, in
float64.
"""
