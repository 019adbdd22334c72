"""Troubles of pods: causes in context (`findings`), and their sidecars (`sidecars`)."""
