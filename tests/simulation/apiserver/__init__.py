"""The simulated apiserver."""
