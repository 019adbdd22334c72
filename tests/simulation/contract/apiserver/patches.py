"""The results of patches, and the members that each endpoint changes."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CONFIG_MAP, POD
from flotilla_common.control.plan import Json
from tests.simulation.contract.apiserver.harness import (
    JSON_PATCH,
    MERGE,
    STATUS,
    STRATEGIC,
    Harness,
    Play,
    cloneset,
    config_map,
    meta,
    owned_by,
    pod,
    refused,
    version_of,
)


def _condition(kind: str, status: str, **more: str | None) -> Json:
    return {"type": kind, "status": status} | more


class PodPatchContract:
    def test_conditions_are_merged_by_type(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web"))
            when = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
            first = [_condition("Ready", "False", reason="Why", **when), _condition("Mine", "True", **when)]
            await harness.patch(POD, "web", {"status": {"conditions": first}}, STRATEGIC, "status")
            second = [_condition("Ready", "True", reason=None), _condition("Other", "True", **when)]
            patched = await harness.patch(POD, "web", {"status": {"conditions": second}}, STRATEGIC, "status")
            found = {one["type"]: one for one in patched["status"]["conditions"]}
            assert [one["type"] for one in patched["status"]["conditions"]] == ["Ready", "Other", "Mine"]
            assert found["Ready"]["status"] == "True"
            assert "reason" not in found["Ready"]
            assert found["Ready"]["lastTransitionTime"] == when["lastTransitionTime"]
            gone = [{"type": "Mine", "$patch": "delete"}]
            patched = await harness.patch(POD, "web", {"status": {"conditions": gone}}, STRATEGIC, "status")
            assert [one["type"] for one in patched["status"]["conditions"]] == ["Ready", "Other"]

        play(exchange)

    def test_container_statuses_are_replaced(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web"))
            one = {"name": "main", "image": "x", "imageID": "1", "ready": True, "restartCount": 0}
            both = {"status": {"containerStatuses": [one, one | {"name": "aux"}]}}
            await harness.patch(POD, "web", both, STRATEGIC, "status")
            patched = await harness.patch(POD, "web", {"status": {"containerStatuses": [one]}}, STRATEGIC, "status")
            assert [status["name"] for status in patched["status"]["containerStatuses"]] == ["main"]

        play(exchange)

    def test_the_status_endpoint_changes_metadata_too(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            owner = await harness.create(CONFIG_MAP, config_map("owner"))
            await harness.create(POD, pod("web", labels={"a": "1"}, ownerReferences=[owned_by(owner)]))
            patch: Json = {
                "metadata": {"labels": {"a": "2"}, "annotations": {"b": "3"}, "finalizers": ["x.io/keep"]},
                "spec": {"containers": [{"name": "main", "image": "nginx:2"}]},
                "status": {"phase": "Running"},
            }
            patch["metadata"]["ownerReferences"] = [{"$patch": "delete", "uid": meta(owner)["uid"]}]
            patched = await harness.patch(POD, "web", patch, STRATEGIC, "status")
            assert (meta(patched)["labels"], meta(patched)["annotations"]) == ({"a": "2"}, {"b": "3"})
            assert meta(patched)["finalizers"] == ["x.io/keep"]
            assert [one["uid"] for one in meta(patched)["ownerReferences"]] == [meta(owner)["uid"]]
            assert patched["spec"]["containers"][0]["image"] == "nginx:1"
            assert (patched["status"]["phase"], meta(patched)["generation"]) == ("Running", 1)

        play(exchange)

    def test_the_main_endpoint_leaves_the_status_alone(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web"))
            patch: Json = {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}
            patched = await harness.patch(POD, "web", patch, STRATEGIC)
            assert (meta(patched)["labels"], patched["status"]["phase"]) == ({"a": "b"}, "Pending")
            assert meta(patched)["generation"] == 1

        play(exchange)

    def test_what_of_a_pod_may_change(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web"))
            image = {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}
            patched = await harness.patch(POD, "web", image, STRATEGIC)
            assert [one["image"] for one in patched["spec"]["containers"]] == ["nginx:2", "busybox:1"]
            assert meta(patched)["generation"] == 2
            for spec in (
                {"containers": [{"name": "main", "command": ["x"]}]},
                {"containers": [{"name": "new", "image": "x"}]},
                {"nodeName": "elsewhere"},
                {"restartPolicy": "Never"},
                {"terminationGracePeriodSeconds": 5},
            ):
                error = await refused(harness.patch(POD, "web", {"spec": spec}, STRATEGIC))
                assert (error.code, error.reason) == (422, "Invalid")
                assert "pod updates may not" in error.message

        play(exchange)

    def test_finalizers_are_united(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web", finalizers=["x.io/b", "x.io/a"]))
            more = {"metadata": {"finalizers": ["x.io/c", "x.io/a"]}}
            patched = await harness.patch(POD, "web", more, STRATEGIC)
            assert meta(patched)["finalizers"] == ["x.io/c", "x.io/b", "x.io/a"]
            less = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/b"]}}
            assert meta(await harness.patch(POD, "web", less, STRATEGIC))["finalizers"] == ["x.io/c", "x.io/a"]
            none = {"metadata": {"finalizers": None}}
            assert "finalizers" not in meta(await harness.patch(POD, "web", none, MERGE))

        play(exchange)

    def test_owners_are_merged_by_uid_or_replaced(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            one = await harness.create(CONFIG_MAP, config_map("one"))
            two = await harness.create(CONFIG_MAP, config_map("two"))
            await harness.create(POD, pod("web", ownerReferences=[owned_by(one)]))
            more = {"metadata": {"ownerReferences": [owned_by(two, controller=True)]}}
            patched = await harness.patch(POD, "web", more, STRATEGIC)
            assert [owner["name"] for owner in meta(patched)["ownerReferences"]] == ["two", "one"]
            patched = await harness.patch(POD, "web", more, MERGE)
            assert [owner["name"] for owner in meta(patched)["ownerReferences"]] == ["two"]
            patched = await harness.patch(POD, "web", {"metadata": {"ownerReferences": None}}, MERGE)
            assert "ownerReferences" not in meta(patched)

        play(exchange)

    def test_field_owners_can_be_dropped(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web"))
            patch: Json = {"metadata": {"managedFields": [{}], "labels": {"a": "b"}}}
            patched = await harness.patch(POD, "web", patch, STRATEGIC)
            assert meta(patched)["labels"] == {"a": "b"}
            assert not meta(patched).get("managedFields")

        play(exchange)

    def test_resizing(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            sized = pod("web")
            for container in sized["spec"]["containers"]:
                container["resources"] = {"requests": {"cpu": "1"}}
            await harness.create(POD, sized)
            more = {"name": "main", "image": "ignored:1", "resources": {"requests": {"cpu": "2"}}}
            patched = await harness.patch(POD, "web", {"spec": {"containers": [more]}}, STRATEGIC, "resize")
            found = patched["spec"]["containers"]
            assert [one["resources"]["requests"]["cpu"] for one in found] == ["2", "1"]
            assert (found[0]["image"], meta(patched)["generation"]) == ("nginx:1", 2)
            await harness.create(POD, pod("small"))
            error = await refused(harness.patch(POD, "small", {"spec": {"containers": [more]}}, STRATEGIC, "resize"))
            why = 'spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing'
            assert error.message == f'Pod "small" is invalid: {why}'
            main = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}}
            error = await refused(harness.patch(POD, "web", main, STRATEGIC))
            assert (error.code, error.reason) == (422, "Invalid")

        play(exchange)

    def test_ephemeral_containers(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            made = await harness.create(POD, pod("web", labels={"a": "1"}))
            first = await _inject(harness, {"name": "dbg", "image": "busybox:1", "targetContainerName": "main"})
            (found,) = first["spec"]["ephemeralContainers"]
            assert (found["imagePullPolicy"], found["terminationMessagePolicy"]) == ("IfNotPresent", "File")
            assert (meta(first)["labels"], meta(first)["generation"]) == ({"a": "1"}, 2)
            assert first["spec"]["containers"] == made["spec"]["containers"]
            second = await _inject(harness, {"name": "more", "image": "busybox:1"})
            assert [one["name"] for one in second["spec"]["ephemeralContainers"]] == ["more", "dbg"]
            assert second == await harness.get(POD, "web")

        play(exchange)

    def test_what_ephemeral_containers_may_not(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web"))
            await _inject(harness, {"name": "dbg", "image": "busybox:1"})
            for container, told in (
                ({"name": "dbg", "image": "busybox:2"}, 'existing ephemeral containers "dbg" may not be changed'),
                ({"name": "dbg", "$patch": "delete"}, 'existing ephemeral containers "dbg" may not be removed'),
                ({"name": "main", "image": "busybox:1"}, 'name: Duplicate value: "main"'),
                ({"name": "new"}, "image: Required value"),
                ({"name": "new", "image": "x", "targetContainerName": "no"}, 'targetContainerName: Not found: "no"'),
            ):
                error = await refused(_inject(harness, container))
                assert (error.code, error.reason) == (422, "Invalid")
                assert told in error.message
            extra = {"spec": {"ephemeralContainers": [{"name": "new", "image": "busybox:1"}]}}
            error = await refused(harness.patch(POD, "web", extra, STRATEGIC))
            assert "pod updates may not" in error.message
            brought = pod("early")
            brought["spec"] |= extra["spec"]
            error = await refused(harness.create(POD, brought))
            assert "spec.ephemeralContainers: Forbidden: cannot be set on create" in error.message
            missing = await refused(_inject(harness, {"name": "new", "image": "x"}, pod="gone"))
            assert (missing.code, missing.message) == (404, 'pods "gone" not found')

        play(exchange)

    def test_binding(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web"))
            waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
            await harness.patch(POD, "web", {"status": {"conditions": [waits]}}, STRATEGIC, "status")
            await _bind(harness, "web", "nowhere")
            bound = await harness.get(POD, "web")
            assert bound["spec"]["nodeName"] == "nowhere"
            scheduled = next(one for one in bound["status"]["conditions"] if one["type"] == "PodScheduled")
            assert scheduled["status"] == "True"
            assert not {"reason", "message"} & scheduled.keys()
            error = await refused(_bind(harness, "web", "elsewhere"))
            told = 'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "nowhere"'
            assert (error.code, error.reason, error.message) == (409, "Conflict", told)
            error = await refused(_bind(harness, "gone", "elsewhere"))
            assert (error.code, error.message) == (404, 'pods "gone" not found')

        play(exchange)

    def test_eviction(self, play: Play) -> None:
        """A pod that is nowhere goes at once, one on a node within its grace period."""

        async def exchange(harness: Harness) -> None:
            for name in ("web", "placed"):
                await harness.create(POD, pod(name))
            await _bind(harness, "placed", "nowhere")
            for name in ("web", "placed"):
                await _evict(harness, name)
            assert not await harness.exists(POD, "web")
            assert "deletionTimestamp" in (await harness.get(POD, "placed"))["metadata"]
            error = await refused(_evict(harness, "gone"))
            assert (error.code, error.message) == (404, 'pods "gone" not found')

        play(exchange)


async def _evict(harness: Harness, name: str) -> None:
    await harness.post(
        POD, name, "eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    )


async def _bind(harness: Harness, name: str, node: str) -> None:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": node}}
    await harness.post(POD, name, "binding", body)


async def _inject(harness: Harness, container: Json, pod: str = "web") -> Json:
    """Add an ephemeral container; labels and images do not change on that way."""
    patch: Json = {
        "metadata": {"labels": {"b": "2"}},
        "spec": {"ephemeralContainers": [container], "containers": [{"name": "main", "image": "nginx:2"}]},
    }
    return await harness.patch(POD, pod, patch, STRATEGIC, "ephemeralcontainers")


class CustomPatchContract:
    def test_the_status_endpoint_changes_nothing_else(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(CLONE_SET, cloneset("web"))
            patch: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 9}, "status": STATUS}
            patched = await harness.patch(CLONE_SET, "web", patch, MERGE, "status")
            assert (patched["status"], patched["spec"]["replicas"]) == (STATUS, 3)
            assert ("labels" in meta(patched), meta(patched)["generation"]) == (False, 1)

        play(exchange)

    def test_a_patch_of_nothing_tells_whether_an_object_is_as_it_was(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            made = await harness.create(CLONE_SET, cloneset("web"))
            sure = {"metadata": {key: meta(made)[key] for key in ("uid", "resourceVersion")}}
            assert version_of(await harness.patch(CLONE_SET, "web", sure, MERGE, "status")) == version_of(made)
            await harness.patch(CLONE_SET, "web", {"metadata": {"labels": {"a": "b"}}})
            assert (await refused(harness.patch(CLONE_SET, "web", sure, MERGE, "status"))).code == 409
            await harness.delete(CLONE_SET, "web")
            assert (await refused(harness.patch(CLONE_SET, "web", sure, MERGE, "status"))).code == 404
            await harness.create(CLONE_SET, cloneset("web"))
            assert (await refused(harness.patch(CLONE_SET, "web", sure, MERGE, "status"))).code == 409

        play(exchange)

    def test_the_generation_counts_changes_of_the_spec(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(CLONE_SET, cloneset("web"))
            labelled = await harness.patch(CLONE_SET, "web", {"metadata": {"labels": {"a": "b"}}, "status": STATUS})
            assert (meta(labelled)["generation"], "status" in labelled) == (1, False)
            scaled = await harness.patch(CLONE_SET, "web", {"spec": {"replicas": 9}})
            assert meta(scaled)["generation"] == 2

        play(exchange)

    def test_unknown_members_vanish_and_defaults_appear(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            spec: Json = {"bogus": 1, "replicas": None, "scaleStrategy": {"podsToDelete": ["a"]}}
            spec["template"] = {"metadata": {"x": 1}, "spec": {"containers": [], "bogus": {"kept": True}}}
            made = await harness.create(CLONE_SET, cloneset("web", spec=spec) | {"bogus": 2})
            assert ("bogus" in made, {"bogus", "replicas"} & made["spec"].keys()) == (False, set())
            assert made["spec"]["scaleStrategy"] == {"podsToDelete": ["a"], "enablePVCReuse": False}
            assert made["spec"]["template"]["spec"]["bogus"] == {"kept": True}

        play(exchange)

    def test_wrong_types_are_refused(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            cases: list[tuple[Json, str]] = [
                ({"replicas": "3"}, _wrong_type("spec.replicas", "integer", "string")),
                ({"updateStrategy": {"rollingUpdate": {"partition": True}}}, "updateStrategy.rollingUpdate.partition"),
                ({"minReadySeconds": 1.5}, 'spec.minReadySeconds: Invalid value: "float64": '),
                ({"scaleStrategy": {"podsToDelete": "a"}}, 'podsToDelete in body must be of type array: "string"'),
            ]
            for spec, told in cases:
                error = await refused(harness.create(CLONE_SET, cloneset("web", spec=spec)))
                assert (error.code, error.reason) == (422, "Invalid")
                assert told in error.message
            error = await refused(harness.create(CLONE_SET, cloneset("web", spec={"selector": None})))
            assert error.message == 'CloneSet.apps.kruise.io "web" is invalid: spec.selector: Required value'
            await harness.create(CLONE_SET, cloneset("web"))
            half = {"status": {"replicas": 1}}
            error = await refused(harness.patch(CLONE_SET, "web", half, MERGE, "status"))
            assert "status.readyReplicas: Required value" in error.message

        play(exchange)

    def test_there_is_no_strategic_patch(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(CLONE_SET, cloneset("web"))
            error = await refused(harness.patch(CLONE_SET, "web", {"spec": {"replicas": 1}}, STRATEGIC))
            assert (error.code, error.reason) == (415, "UnsupportedMediaType")
            assert (
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                in error.message
            )

        play(exchange)

    def test_operations(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(CLONE_SET, cloneset("web"))
            image = "/spec/template/spec/containers/0/image"
            operations = [
                {"op": "test", "path": "/spec/replicas", "value": 3},
                {"op": "replace", "path": image, "value": "nginx:2"},
                {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
                {"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "b", "image": "c"}},
            ]
            patched = await harness.patch(CLONE_SET, "web", operations, JSON_PATCH)
            images = [one["image"] for one in patched["spec"]["template"]["spec"]["containers"]]
            assert (images, meta(patched)["generation"]) == (["nginx:2", "c"], 2)
            for wrong in (
                {"op": "test", "path": "/spec/replicas", "value": 4},
                {"op": "remove", "path": "/spec/nothing"},
                {"op": "replace", "path": "/spec/template/spec/containers/9/image", "value": "x"},
            ):
                error = await refused(harness.patch(CLONE_SET, "web", [wrong], JSON_PATCH))
                told = "the server rejected our request due to an error in our request"
                assert (error.code, error.reason, error.message) == (422, "Invalid", told)

        play(exchange)

    def test_scale(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            made = await harness.create(CLONE_SET, cloneset("web"))
            status = STATUS | {"labelSelector": "app=web"}
            await harness.patch(CLONE_SET, "web", {"status": status}, MERGE, "status")
            seen = await harness.get(CLONE_SET, "web", "scale")
            assert (seen["kind"], seen["apiVersion"], seen["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 3})
            assert seen["status"] == {"replicas": 1, "selector": "app=web"}
            assert meta(seen)["uid"] == meta(made)["uid"]
            scaled = await harness.patch(CLONE_SET, "web", {"spec": {"replicas": 5}}, MERGE, "scale")
            assert scaled["spec"] == {"replicas": 5}
            found = await harness.get(CLONE_SET, "web")
            assert (found["spec"]["replicas"], meta(found)["generation"]) == (5, 2)
            assert version_of(found) == version_of(scaled)
            await harness.replace(CLONE_SET, scaled | {"spec": {"replicas": 0}}, "scale")
            assert (await harness.get(CLONE_SET, "web"))["spec"]["replicas"] == 0
            assert (await harness.get(CLONE_SET, "web", "scale"))["spec"] == {}
            error = await refused(harness.replace(CLONE_SET, scaled | {"spec": {"replicas": 7}}, "scale"))
            assert (error.code, error.reason) == (409, "Conflict")
            error = await refused(harness.patch(CLONE_SET, "web", {"spec": {"replicas": -1}}, MERGE, "scale"))
            told = ".spec.replicas: Invalid value: -1: should be a non-negative integer"
            assert error.message == f'CloneSet.apps.kruise.io "web" is invalid: {told}'
            await harness.patch(CLONE_SET, "web", {"spec": {"replicas": None}})
            error = await refused(harness.get(CLONE_SET, "web", "scale"))
            assert (error.code, error.reason) == (500, "InternalError")

        play(exchange)


def _wrong_type(path: str, wanted: str, found: str) -> str:
    return f'{path}: Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'
