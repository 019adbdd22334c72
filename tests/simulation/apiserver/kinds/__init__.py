"""What the apiserver knows about each kind: one small class per kind whose rules differ from the usual ones."""
