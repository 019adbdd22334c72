"""What node agents tell beside the status of our own kinds: what containers run, and events (nodeagent.md §7, §8)."""
