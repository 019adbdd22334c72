"""Live bus traffic for people: every message becomes one `Line` (`lines`), which a filter picks (`filters`)."""
