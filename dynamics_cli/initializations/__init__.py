"""Initial weights, drawn in float64 from the initialisation stream of the seed; a kind each."""
