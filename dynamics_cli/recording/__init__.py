"""What runs record beside their losses, and when: measures and schedules of snapshots, kinds both."""
