"""The history of an object: changes by users, decisions and writes, up to the end."""
