"""Random exploration: what users do, drawn by seed, met by random faults; failures shrink to a minimal script."""
