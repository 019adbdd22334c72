"""The story of a workload: records of the bus as lives of pods, and what they were at a moment. Pure but the reader."""
