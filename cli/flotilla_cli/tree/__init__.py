"""A workload as a tree: the object, its revisions, their pods, and what each waits for.

`view` computes the tree as data (the output of `-o json`), `render` draws it, `live` keeps it fresh.
"""
