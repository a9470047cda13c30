"""Values, gradients and products of a problem, for steppers and measures alike."""
