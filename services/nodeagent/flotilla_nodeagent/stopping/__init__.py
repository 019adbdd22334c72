"""Stops one container as the kubelet would: preStop hook, stop signal, kill (nodeagent.md §4)."""
