"""What Min et al. 2024 prove and measure: cones, bounds and the single neuron."""
