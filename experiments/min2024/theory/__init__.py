"""Theory and measures of Min et al. 2024: cones, bounds and the single neuron."""
