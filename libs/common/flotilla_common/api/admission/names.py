"""Rules for names that several kinds share."""

import re
from collections.abc import Iterator

from flotilla_common.api.admission.fields import Fault, invalid

LONGEST_LABEL = 63
"""Characters of a DNS label, and of a label's value."""

_TOO_LONG = f"must be no more than {LONGEST_LABEL} characters"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NO_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character"
)
_JOB = re.compile(r"[a-zA-Z0-9-]+")


def label_faults(path: str, name: str) -> Iterator[Fault]:
    """The name must be a DNS label."""
    if len(name) > LONGEST_LABEL:
        yield invalid(path, name, _TOO_LONG)
    if not _LABEL.fullmatch(name):
        yield invalid(path, name, _NO_LABEL)


def job_name_faults(name: str) -> Iterator[Fault]:
    """Pods of a job have its name as a label, and its name begins theirs."""
    if not _JOB.fullmatch(name):
        yield invalid("metadata.name", name, "must consist of alphanumeric characters or '-'")
    if len(name) > LONGEST_LABEL:
        yield invalid("metadata.name", name, _TOO_LONG)
