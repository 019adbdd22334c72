"""Sidecars that are ended when the work of their pod is done (container-extras.md §A)."""
