"""Data that are files: their formats, where they are kept, and how they get there."""
