"""The state of the bus (`flotilla bus`): streams and their consumers, markers, heartbeats, traffic."""
