"""The parts of a run directory: files, append-only arrays, sealed JSON, locks, checkpoints."""
