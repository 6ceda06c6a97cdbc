"""What moves: one board of charts that follow a run while it goes on."""
