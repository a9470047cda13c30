"""The mathematics of networks, compiled: elementary functions that vectorise."""
