"""Runs the probes of PodProbeMarkers and reports their results in the node's NodePodProbe (nodeagent.md §6)."""
