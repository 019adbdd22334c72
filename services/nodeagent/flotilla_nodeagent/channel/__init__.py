"""The node channel from the agent's side: copies of objects come in, reports go out (docs/adr/0007)."""
