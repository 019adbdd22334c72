"""Exhaustive perturbation: every scenario, every point at which something can go wrong, everything that can."""
