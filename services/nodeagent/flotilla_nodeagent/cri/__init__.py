"""The container runtime, through the Container Runtime Interface on its local socket."""
