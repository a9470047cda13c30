"""How networks are trained: optimizers and schedules of their step sizes, a kind each."""
