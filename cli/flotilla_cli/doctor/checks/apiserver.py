"""The apiserver: there, and of a version that Flotilla works with."""

import re
from collections.abc import Iterator

from flotilla_cli.doctor.facts import Facts, NotKnown
from flotilla_cli.doctor.finding import Finding

OLDEST_MINOR = 32
"""Of Kubernetes 1; docs/operations.md names it."""


def seen(facts: Facts) -> str:
    """What was looked at."""
    return f"apiserver {facts.server.get().version}"


def check(facts: Facts) -> Iterator[Finding]:
    """It answers, and is not too old."""
    try:
        version = facts.server.get().version
    except NotKnown as error:
        if not str(error).startswith("not allowed"):
            yield Finding(
                code="ApiserverUnreachable",
                about="apiserver",
                text=str(error),
                advice="see that it runs, and that KUBECONFIG names the right cluster; nothing else could be looked at",
            )
            return
        raise
    found = re.match(r"v1\.(\d+)", version)
    if found and int(found[1]) < OLDEST_MINOR:
        yield Finding(
            code="ApiserverTooOld",
            about="apiserver",
            text=f"it is {version}, and Flotilla needs 1.{OLDEST_MINOR} or newer",
            advice="upgrade Kubernetes",
        )
