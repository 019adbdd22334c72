"""Pulls the images that the node's NodeImage asks for (nodeagent.md §3)."""
