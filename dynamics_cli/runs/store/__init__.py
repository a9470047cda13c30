"""The parts of a run directory: files, append-only arrays with checksums, sealed JSON, locks,
checkpoints.
"""
