"""Several runs: side by side as replicas, in processes, on a cluster."""
