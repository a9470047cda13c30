"""What Phuong and Lampert 2021 prove: orthogonal separability, extremal sectors, the limit of
the neurons.
"""
