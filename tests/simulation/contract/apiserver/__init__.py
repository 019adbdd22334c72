"""The contract of an apiserver, as classes of tests: for the simulated one and for a real one.

Where they differ, the simulated one is wrong. Each test has a namespace of its own.
"""
