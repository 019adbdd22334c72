"""Previews of changes: their effects on pods, computed from the live objects without a write."""
