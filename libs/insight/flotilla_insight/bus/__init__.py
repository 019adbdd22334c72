"""The state of the bus: streams and their consumers, markers, heartbeats, traffic."""
