"""Containers of a pod that are started one after the other (container-extras.md §B)."""
