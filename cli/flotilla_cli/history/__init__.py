"""The history of an object (`flotilla history`): changes by users, decisions and writes, up to the end."""
