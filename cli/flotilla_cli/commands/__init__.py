"""The commands of `flotilla`: one module per verb, which parses its options and calls its package."""
