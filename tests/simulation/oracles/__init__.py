"""Oracles: rules that every history of a simulated run must keep, whatever fault it has."""
