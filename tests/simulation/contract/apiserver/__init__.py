"""What services and users rely on from an apiserver, as classes of tests: for the simulated one and for a real one.

Where they differ, the simulated one is wrong. A test plays a scene in a namespace of its own.
"""
