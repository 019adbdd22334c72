"""Terminates sidecars when the work of their pod is done (container-extras.md §A)."""
