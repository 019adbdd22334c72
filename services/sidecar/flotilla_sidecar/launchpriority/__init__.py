"""Starts the containers of a pod in the order of their priorities (container-extras.md §B)."""
