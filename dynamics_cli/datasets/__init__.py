"""Data sets, a kind a file; `files` has the formats and the store of data files that they read."""
