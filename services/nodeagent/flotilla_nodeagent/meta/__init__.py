"""What containers were started with, and restarts for environments that changed (nodeagent.md §5, common.md §9.8)."""
