"""Defaults from admission stay when a planner writes a workload as a whole."""

from copy import deepcopy
from functools import partial

import pytest

from flotilla_common.api.documents import Json, merge_patch
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, Resource
from flotilla_common.clock import ManualClock
from flotilla_common.control.plan import Intent
from flotilla_common.control.writes import create_of, patch_of
from flotilla_common.gates import Gates
from flotilla_common.model.store import Objects
from flotilla_common.model.writes import carry_out
from flotilla_insight.preview.defaults import with_defaults
from tests.unit.cloneset.build import NOW

ADMIT = partial(with_defaults, gates=Gates.parse(""))
KINDS = (CLONE_SET, STATEFUL_SET, BUILT_IN_STATEFUL_SET, DEPLOYMENT)


def workload(resource: Resource, image: str = "nginx:1") -> Json:
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    return {**resource.type_meta, "metadata": {"name": "web", "namespace": "ns"}, "spec": spec}


@pytest.mark.parametrize("resource", KINDS, ids=lambda one: one.api_version + " " + one.kind)
def test_members_that_were_filled_in_come_back(resource: Resource) -> None:
    objects = Objects(ManualClock(NOW))
    stored = carry_out(objects, create_of(resource, workload(resource), Intent.CREATE, "new"), ADMIT).after
    assert stored is not None
    assert "terminationMessagePath" in stored["spec"]["template"]["spec"]["containers"][0]

    def write(wanted: Json) -> Json:
        meta = ObjectMeta(name="web", namespace="ns", uid=stored["metadata"]["uid"])
        body = {"spec": merge_patch(stored["spec"], wanted["spec"])}
        written = carry_out(objects, patch_of(resource, meta, Intent.UPDATE, "as it is", body=body), ADMIT)
        assert written.after is not None
        return written.after

    assert write(workload(resource)) == stored
    newer = deepcopy(stored["spec"])
    newer["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    assert write(workload(resource, "nginx:2"))["spec"] == newer
