"""Records of runs beside their losses, and their schedules: measures and snapshots, kinds both."""
