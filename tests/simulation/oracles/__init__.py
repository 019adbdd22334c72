"""Oracles: what may never be seen in the history of a simulated run, whatever goes wrong in it."""
