"""Live bus traffic for people: every message becomes one `Line`, which a pattern selects (`lines`)."""
