"""A recorded object planned again: what the service did (`passes`), from which state (`recording`), and whether this
release decides the same (`again`, `compare`)."""
