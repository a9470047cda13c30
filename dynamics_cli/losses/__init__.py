"""Each loss with its derivative, for torch tensors and NumPy arrays, a kind each."""
