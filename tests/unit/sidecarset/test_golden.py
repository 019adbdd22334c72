"""A SidecarSet as OpenKruise left it in the middle of a rollout: planned, nothing is written but what is due."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from flotilla_common.api.core import Namespace, Pod
from flotilla_common.api.kinds.sidecarset.revisions import hash_annotations
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_common.control.plan import Plan
from flotilla_sidecar.sidecarset.plan import plan
from flotilla_sidecar.sidecarset.snapshot import SidecarSetSnapshot
from tests.testkit.documents import Json, decoded
from tests.testkit.plans import codes
from tests.unit.sidecarset.build import HASH, as_json, namespace, pod_patches, updated
from tests.unit.workload.openkruise import documents, stored, stored_revisions

NOW = datetime(2026, 11, 23, 8, 0, 0, tzinfo=UTC)
NAMESPACES: list[Namespace] = [namespace("golden"), namespace("default")]


def injected_pods() -> list[Pod]:
    pods = [one for one in documents("pods") if one["metadata"]["labels"].get("app") == "meshed"]
    return decoded(pods, list[Pod])


def planned(document: Json, **more: Any) -> Plan:
    return plan(
        SidecarSetSnapshot(
            sidecar_set=decoded(document, SidecarSet),
            pods=injected_pods(),
            namespaces=NAMESPACES,
            revisions=stored_revisions("SidecarSet"),
            **more,
        ),
        NOW,
    )


def changed(document: Json, **spec: Any) -> Json:
    """Return the SidecarSet as its users change it, with the hashes that its webhook writes."""
    document["spec"] |= spec
    document["metadata"]["annotations"] |= hash_annotations(document["spec"])
    document["metadata"]["generation"] += 1
    return document


def test_what_rests_is_left_alone() -> None:
    result = planned(stored("sidecarsets"))
    assert (result.stages, result.status, result.events) == ((), None, ())
    assert codes(result) == {"PartitionReached"}


def test_the_status_comes_out_as_it_was() -> None:
    document = stored("sidecarsets")
    golden, document["status"] = document["status"], {}
    patch = planned(document).status
    assert patch is not None
    assert patch.body["status"] == golden


def test_the_rollout_goes_on_where_it_stood() -> None:
    """Pods are updated one after the other, with annotations that OpenKruise can read again."""
    document = changed(
        stored("sidecarsets"), updateStrategy={"type": "RollingUpdate", "maxUnavailable": 1, "partition": 0}
    )
    result = planned(document)
    (name,) = updated(result)
    (patch,) = pod_patches(result)
    (before,) = (one for one in injected_pods() if one.metadata.name == name)
    done = next(one for one in injected_pods() if one.metadata.name == "meshed-bk4tz")
    theirs, ours = done.metadata.annotations, patch.body["metadata"]["annotations"]
    assert ours.keys() == {key for key in theirs if key in ours}
    for key in ours:
        assert without_times(ours[key]) == without_times(theirs[key])
    assert patch.body["spec"] == {"containers": [{"name": "proxy", "image": "nginx:1.21"}]}
    assert before.spec.containers[0].image == "nginx:1.20"


def without_times(text: str) -> str:
    document = msgspec.json.decode(text)
    document["side"].pop("updateTimestamp")
    return as_json(document)


def test_back_to_the_image_before() -> None:
    """Its revision is found by what it holds; the two pods that have it still are updated as they are."""
    document = stored("sidecarsets")
    document["spec"]["containers"][0]["image"] = "nginx:1.20"
    result = planned(changed(document))
    (stage,) = result.stages
    ((raised,),) = stage.chains
    assert (raised.name, raised.verb) == ("side-7c8b74c6df", "patch")
    assert result.numbers["updated"] == 2
    assert HASH in injected_pods()[0].metadata.annotations
