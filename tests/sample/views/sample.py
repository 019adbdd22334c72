"""The command line's view of Sample, a kind that creates a workload."""

from collections.abc import Sequence

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_insight.views.kindview import KindView, PodQuestion, Summary
from tests.sample.controller import Sample
from tests.sample.kind import SAMPLES


def summary(raw: bytes) -> Summary:
    """Summarize how many of its pods are ready, and its number of ConfigMaps."""
    sample = msgspec.json.decode(raw, type=Sample)
    spec, status = sample.spec, sample.status
    headline = f"{status.ready_replicas} of {spec.replicas or 0} pods are ready"
    return Summary(headline, ("CONFIGMAPS", "WANTED"), [(str(status.size), str(spec.size))])


def _progress(spec: Json, status: Json) -> str:
    size, wanted = status.get("size", 0), spec.get("size", 0)
    return f"{size} of {wanted} ConfigMaps" if size != wanted else ""


async def _about_pod(about: PodQuestion) -> Sequence[str]:
    name = about.pod.metadata.labels.get("sample")
    return [f"it is counted by Sample {name}"] if name else []


VIEWS = (KindView(resource=SAMPLES, summary=summary, children=(CLONE_SET,), about_pod=_about_pod, progress=_progress),)
