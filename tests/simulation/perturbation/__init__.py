"""Exhaustive perturbation: every fault at every point of every scenario."""
