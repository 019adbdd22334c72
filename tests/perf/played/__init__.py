"""A stand-in for the apiserver that plays a recorded CloneSet, multiplied to as many objects as a test needs.

nats-server, watcher and services are real and connect to it as to any apiserver; there is no control plane behind it.
"""
