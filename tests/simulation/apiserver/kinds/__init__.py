"""The rules of each kind: one small class per kind that differs from the usual rules."""
