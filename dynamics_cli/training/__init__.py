"""Training: initial weights, steppers, the recording schedule, the loop, and the session around it."""
