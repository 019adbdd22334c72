"""The probes of PodProbeMarkers: run here, reported as the status of the node's NodePodProbe (nodeagent.md §6)."""
