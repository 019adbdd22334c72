"""The agent's side of the node channel: copies of objects come in, reports go out (docs/adr/0007)."""
