"""What admission decides, as pure functions over raw documents: defaults, field errors, patches, webhook entries."""
