"""The metrics of the pod webhook."""

_LATENCY = "controller_runtime_webhook_latency_seconds"
MUTATE, CHECK = "/mutate-pod", "/validate-pod"


def calls(path: str) -> str:
    """Return the series of all calls of a path."""
    return f'{_LATENCY}_count{{webhook="{path}"}}'


CALLS = calls(MUTATE)


def calls_within(seconds: float, path: str = MUTATE) -> str:
    """Return the series of the calls within this time."""
    return f'{_LATENCY}_bucket{{le="{seconds}",webhook="{path}"}}'
