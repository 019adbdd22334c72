"""Draws the state of the bus (`flotilla bus`)."""
