"""The metrics of the pod webhook."""

_LATENCY = "controller_runtime_webhook_latency_seconds"
CALLS = f'{_LATENCY}_count{{webhook="/mutate-pod"}}'
"""All calls."""


def calls_within(seconds: float) -> str:
    """Those that took no longer."""
    return f'{_LATENCY}_bucket{{le="{seconds}",webhook="/mutate-pod"}}'
