"""Admission as pure functions of raw documents: defaults, field errors, patches, webhook entries."""
