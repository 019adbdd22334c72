"""The nodes as their agents see them: the real agent, a container runtime in memory, a disk that outlives the agent."""
