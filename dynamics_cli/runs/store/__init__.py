"""What a run directory is made of: files, append-only arrays with checksums, sealed JSON, locks, checkpoints."""
