"""The simulated NATS: one server, and a `Bus` for every process."""
