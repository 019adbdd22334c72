"""Draws the history of an object (`flotilla history`)."""
