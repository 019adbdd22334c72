"""An object that owns no tree of pods, on one card: a headline, what it waits for, and its parts as a table."""
