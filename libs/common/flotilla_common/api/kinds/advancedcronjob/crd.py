"""The AdvancedCronJob CRD."""

from flotilla_common.api.crds.schema import anything
from flotilla_common.api.crds.version import AGE, Version


def version(name: str) -> Version:
    """One version of the CRD."""
    return Version(name, anything("What is wanted."), anything("What was last seen."), (AGE,))
