"""Reports of node agents other than statuses of our own kinds: container metadata and events (nodeagent.md §7, §8)."""
