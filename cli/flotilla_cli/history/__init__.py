"""The story of an object (`flotilla history`): who wanted what, what was decided and written, until it was done."""
