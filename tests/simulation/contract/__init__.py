"""What the fakes of the simulation have in common with the real things."""
