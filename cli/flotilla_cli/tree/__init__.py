"""A workload as a tree: `render` draws it (`flotilla_insight.tree` computes it), `live` keeps it fresh."""
