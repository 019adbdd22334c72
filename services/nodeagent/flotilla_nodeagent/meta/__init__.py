"""Reports what containers were started with, and restarts those with outdated environments.

See nodeagent.md §5, common.md §9.8.
"""
