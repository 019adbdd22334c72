"""Draws what an apply would do (`flotilla plan -f FILE`)."""
