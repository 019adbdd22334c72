"""What the bus tells of itself (`flotilla bus`): streams and their readers, markers, heartbeats, traffic."""
