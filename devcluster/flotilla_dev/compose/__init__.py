"""Programs of the first containers of compose.yaml: they make keys, and fake nodes."""
