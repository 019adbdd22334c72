"""The input of an EphemeralJob's plan."""

from collections.abc import Mapping, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB, EphemeralJob
from flotilla_common.control.plan import ObjectRef


class EphemeralJobSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One job, and the pods that its selector matches."""

    job: EphemeralJob
    pods: Sequence[Pod] = ()  # of the namespace, in any state
    problem: str = ""  # why the selector cannot be parsed
    failures: Mapping[str, str] = {}  # error text of the previous pass by phase: inject

    @property
    def subject(self) -> ObjectRef:
        """The job as the subject of events and bus records."""
        return ObjectRef.of(EPHEMERAL_JOB, self.job.metadata)
