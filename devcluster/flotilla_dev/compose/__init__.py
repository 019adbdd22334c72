"""What two containers of compose.yaml do before the others start: make keys, and fake nodes."""
