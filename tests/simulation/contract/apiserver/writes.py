"""Creates and updates: identity, versions, conflicts, what may change."""

import re

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CONFIG_MAP, JOB, LEASE, POD, POD_TEMPLATE, REVISION, Resource
from flotilla_common.control.plan import Json
from tests.simulation.contract.apiserver.harness import (
    STRATEGIC,
    Harness,
    Play,
    causes,
    cloneset,
    config_map,
    encode,
    job,
    meta,
    owned_by,
    pod,
    refused,
    version_of,
)

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class CreateContract:
    def test_a_new_object_gets_its_identity(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            made = await harness.create(POD, pod("web", labels={"a": "b"}, finalizers=["x.io/keep"]))
            assert list(made)[:3] == ["kind", "apiVersion", "metadata"]
            assert (meta(made)["namespace"], meta(made)["generation"]) == (harness.namespace, 1)
            assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta(made)["uid"])
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta(made)["creationTimestamp"])
            assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
            assert (made["spec"]["terminationGracePeriodSeconds"], made["spec"]["restartPolicy"]) == (30, "Always")
            assert await harness.get(POD, "web") == made

        play(exchange)

    def test_a_name_is_taken_once(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            await harness.create(POD, pod("web"))
            error = await refused(harness.create(POD, pod("web")))
            assert (error.code, error.reason, error.message) == (409, "AlreadyExists", 'pods "web" already exists')

        play(exchange)

    def test_generated_names(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            document: Json = {"metadata": {"generateName": "web-"}}
            names = [meta(await harness.create(CONFIG_MAP, document))["name"] for _ in range(3)]
            assert len(set(names)) == 3
            assert all(re.fullmatch("web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
            given = await harness.create(CONFIG_MAP, {"metadata": {"generateName": "web-", "name": "given"}})
            assert (meta(given)["name"], meta(given)["generateName"]) == ("given", "web-")

        play(exchange)

    def test_a_job_is_known_by_its_uid(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            made = await harness.create(JOB, job("once"))
            own = {"batch.kubernetes.io/controller-uid": meta(made)["uid"]}
            assert made["spec"]["selector"] == {"matchLabels": own}
            labels = made["spec"]["template"]["metadata"]["labels"]
            assert labels.items() >= {**own, "batch.kubernetes.io/job-name": "once"}.items()
            assert (made["spec"]["backoffLimit"], made["spec"]["completions"], made["status"]) == (6, 1, {})
            error = await refused(harness.create(JOB, job("always", policy="Always")))
            assert (error.code, error.reason) == (422, "Invalid")
            assert "spec.template.spec.restartPolicy: Required value" in error.message
            image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}}}
            error = await refused(harness.patch(JOB, "once", image, STRATEGIC))
            assert "spec.template.spec: Invalid value" in error.message
            assert "field is immutable" in error.message

        play(exchange)

    def test_what_cannot_be_created(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            error = await refused(harness.api.create(POD, "nowhere-to-be-found", encode(pod("web"))))
            told = 'namespaces "nowhere-to-be-found" not found'
            assert (error.code, error.reason, error.message) == (404, "NotFound", told)
            error = await refused(harness.create(POD, pod("web", namespace="elsewhere")))
            assert (error.code, error.reason) == (400, "BadRequest")
            error = await refused(harness.create(CONFIG_MAP, {"metadata": {}}))
            told = ' "" is invalid: metadata.name: Required value: name or generateName is required'
            assert (error.code, error.reason, error.message) == (422, "Invalid", f"ConfigMap{told}")
            error = await refused(harness.create(CONFIG_MAP, config_map("Not_A_Name")))
            assert (error.code, error.reason) == (422, "Invalid")
            assert 'metadata.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain' in error.message
            error = await refused(harness.create(CONFIG_MAP, config_map("web") | {"kind": "Secret"}))
            assert (error.code, error.reason) == (400, "BadRequest")

        play(exchange)

    def test_what_a_client_may_not_bring_along(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            brought: Json = {"uid": "mine", "generation": 7, "deletionTimestamp": "2020-01-01T00:00:00Z"}
            made = await harness.create(CLONE_SET, cloneset("web", **brought) | {"status": {"replicas": 3}})
            assert meta(made)["uid"] != "mine"
            assert meta(made)["generation"] == 1
            assert "deletionTimestamp" not in meta(made)
            assert "status" not in made
            error = await refused(harness.create(CONFIG_MAP, config_map("web", resourceVersion="1")))
            told = "resourceVersion should not be set on objects to be created"
            assert (error.code, error.reason, error.message) == (500, "", told)

        play(exchange)

    def test_a_dry_run_stores_nothing(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            version = await harness.version()
            made = await harness.create(CONFIG_MAP, config_map("web"), dry_run=True)
            assert meta(made)["name"] == "web"
            assert not await harness.exists(CONFIG_MAP, "web")
            assert await harness.version() == version

        play(exchange)

    def test_a_template_is_judged_by_a_dry_run(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            good = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
            named: Json = {"metadata": {"generateName": "dry-"}}
            made = await harness.create(POD_TEMPLATE, named | {"template": good}, dry_run=True)
            assert made["template"]["spec"]["restartPolicy"] == "Always"
            mounts = [{"name": "data", "mountPath": "/data"}]
            bad = {"spec": {"containers": [{"name": "main"}, {"name": "main", "image": "x", "volumeMounts": mounts}]}}
            error = await refused(harness.create(POD_TEMPLATE, named | {"template": bad}, dry_run=True))
            assert (error.code, error.reason) == (422, "Invalid")
            told = causes(error)
            assert ("template.spec.containers[0].image", "FieldValueRequired", "Required value") in told
            assert ("template.spec.containers[1].name", "FieldValueDuplicate", 'Duplicate value: "main"') in told
            place = "template.spec.containers[1].volumeMounts[0].name"
            assert (place, "FieldValueNotFound", 'Not found: "data"') in told
            none: Json = {"spec": {"containers": []}}
            error = await refused(harness.create(POD_TEMPLATE, named | {"template": none}, dry_run=True))
            assert causes(error) == {("template.spec.containers", "FieldValueRequired", "Required value")}

        play(exchange)

    def test_owner_references_are_checked(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            one = await harness.create(CONFIG_MAP, config_map("one"))
            two = await harness.create(CONFIG_MAP, config_map("two"))
            both = [owned_by(one, controller=True), owned_by(two, controller=True)]
            error = await refused(harness.create(CONFIG_MAP, config_map("three", ownerReferences=both)))
            assert (error.code, error.reason) == (422, "Invalid")
            assert "Only one reference can have Controller set to true" in error.message
            nameless = owned_by(one) | {"name": ""}
            error = await refused(harness.create(CONFIG_MAP, config_map("three", ownerReferences=[nameless])))
            told = 'ConfigMap "three" is invalid: metadata.ownerReferences.name: Invalid value: "": must not be empty'
            assert error.message == told

        play(exchange)


class UpdateContract:
    def test_every_change_has_a_higher_version_whatever_the_kind(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            versions = [version_of(await harness.create(CONFIG_MAP, config_map("one")))]
            versions.append(version_of(await harness.create(POD, pod("web"))))
            versions.append(version_of(await harness.patch(CONFIG_MAP, "one", {"data": {"a": "1"}})))
            versions.append(version_of(await harness.patch(POD, "web", {"metadata": {"labels": {"a": "1"}}})))
            assert versions == sorted(set(versions))
            assert int(await harness.version()) >= versions[-1]

        play(exchange)

    def test_an_update_without_a_change_makes_no_version(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            made = await harness.create(POD, pod("web", labels={"a": "b"}, annotations={"c": "d"}))
            same = {"metadata": {"labels": {"a": "b"}, "annotations": {"gone": None}}}
            assert version_of(await harness.patch(POD, "web", same)) == version_of(made)
            assert version_of(await harness.patch(POD, "web", same, STRATEGIC)) == version_of(made)
            image = {"spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
            assert version_of(await harness.patch(POD, "web", image, STRATEGIC)) == version_of(made)
            assert version_of(await harness.replace(POD, made)) == version_of(made)
            phase = {"status": {"phase": "Pending"}}
            assert version_of(await harness.patch(POD, "web", phase, STRATEGIC, "status")) == version_of(made)
            clone = await harness.create(CLONE_SET, cloneset("web"))
            assert version_of(await harness.patch(CLONE_SET, "web", {"spec": {"replicas": 3}})) == version_of(clone)

        play(exchange)

    def test_a_write_on_an_old_version_is_refused(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            for resource, made in await _one_of_each(harness):
                name = meta(made)["name"]
                await harness.patch(resource, name, {"metadata": {"labels": {"new": "er"}}})
                old = {"metadata": {"resourceVersion": meta(made)["resourceVersion"], "labels": {"x": "y"}}}
                errors = [
                    await refused(harness.patch(resource, name, old)),
                    await refused(harness.replace(resource, made)),
                ]
                where = f"{resource.plural}.{resource.group}".rstrip(".")
                told = f'Operation cannot be fulfilled on {where} "{name}": {MODIFIED}'
                for error in errors:
                    assert (error.code, error.reason, error.message) == (409, "Conflict", told)
                assert "x" not in meta(await harness.get(resource, name))["labels"]

        play(exchange)

    def test_a_write_to_another_uid_is_refused(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            other = "12345678-1234-1234-1234-123456789012"
            for resource, made in await _one_of_each(harness):
                name, uid = meta(made)["name"], meta(made)["uid"]
                patch = {"metadata": {"uid": other, "labels": {"x": "y"}}}
                error = await refused(harness.patch(resource, name, patch))
                assert (error.code, error.reason) == (422, "Invalid")
                assert {field for field, _, _ in causes(error)} == {"metadata.uid"}
                error = await refused(
                    harness.patch(resource, name, {"metadata": {"uid": other, "resourceVersion": "1"}})
                )
                assert (error.code, error.reason) == (409, "Conflict")
                error = await refused(harness.replace(resource, made | {"metadata": meta(made) | {"uid": other}}))
                assert (error.code, error.reason) == (409, "Conflict")
                assert f"Precondition failed: UID in precondition: {other}, UID in object meta: {uid}" in error.message
                right = {"metadata": {"uid": uid, "labels": {"x": "y"}}}
                assert meta(await harness.patch(resource, name, right))["labels"]["x"] == "y"

        play(exchange)

    def test_a_put_without_a_version(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            for resource, made in await _one_of_each(harness):
                unversioned = made | {"metadata": {k: v for k, v in meta(made).items() if k != "resourceVersion"}}
                unversioned["metadata"]["labels"] = {"put": "true"}
                if resource in (CLONE_SET, LEASE):
                    error = await refused(harness.replace(resource, unversioned))
                    assert (error.code, error.reason) == (422, "Invalid")
                    assert "metadata.resourceVersion: Invalid value: 0" in error.message
                    assert "must be specified for an update" in error.message
                else:
                    assert meta(await harness.replace(resource, unversioned))["labels"] == {"put": "true"}

        play(exchange)

    def test_what_is_not_there_cannot_be_written(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            error = await refused(harness.patch(POD, "gone", {"metadata": {"labels": {"a": "b"}}}))
            assert (error.code, error.reason, error.message) == (404, "NotFound", 'pods "gone" not found')
            error = await refused(harness.patch(POD, "gone", {"metadata": {"uid": "1-2"}}, STRATEGIC, "status"))
            assert (error.code, error.reason) == (404, "NotFound")
            error = await refused(harness.get(CLONE_SET, "gone"))
            assert (error.code, error.message) == (404, 'clonesets.apps.kruise.io "gone" not found')
            error = await refused(harness.delete(POD, "gone"))
            assert (error.code, error.reason) == (404, "NotFound")
            error = await refused(harness.get(Resource("apps.kruise.io", "v1beta1", "nothings", "Nothing"), "x"))
            assert (error.code, error.reason, error.message) == (404, "", "404 page not found")

        play(exchange)

    def test_a_lease_is_taken_by_its_version(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            spec = {"holderIdentity": "one", "leaseDurationSeconds": 3, "renewTime": "2026-01-01T00:00:00.000000Z"}
            made = await harness.create(LEASE, {"metadata": {"name": "shard"}, "spec": spec})
            taken = await harness.replace(LEASE, made | {"spec": spec | {"holderIdentity": "two"}})
            assert version_of(taken) > version_of(made)
            error = await refused(harness.replace(LEASE, made | {"spec": spec | {"holderIdentity": "three"}}))
            assert (error.code, error.reason) == (409, "Conflict")
            assert (await harness.get(LEASE, "shard"))["spec"]["holderIdentity"] == "two"
            await harness.delete(LEASE, "shard")
            error = await refused(harness.replace(LEASE, taken))
            assert (error.code, error.reason) == (409, "Conflict")
            assert "Precondition failed: UID in precondition" in error.message
            anybody = taken | {"metadata": {key: value for key, value in meta(taken).items() if key != "uid"}}
            assert meta(await harness.replace(LEASE, anybody))["uid"] != meta(taken)["uid"]

        play(exchange)

    def test_what_of_the_metadata_may_change(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            made = await harness.create(POD, pod("web"))
            for ignored in ({"creationTimestamp": "2020-01-01T00:00:00Z"}, {"generation": 77}):
                patched = await harness.patch(POD, "web", {"metadata": ignored})
                assert version_of(patched) == version_of(made)
            error = await refused(harness.patch(POD, "web", {"metadata": {"name": "other"}}))
            told = "the name of the object (other) does not match the name on the URL (web)"
            assert (error.code, error.reason, error.message) == (400, "BadRequest", told)
            for wrong, told in (
                ({"deletionTimestamp": "2020-01-01T00:00:00Z"}, "metadata.deletionTimestamp: Invalid value"),
                ({"labels": {"a b": "c"}}, 'metadata.labels: Invalid value: "a b": name part must consist of'),
                ({"labels": {"a": "b c"}}, 'metadata.labels: Invalid value: "b c": a valid label must be an empty'),
                ({"annotations": {"a b": "c"}}, 'metadata.annotations: Invalid value: "a b": name part must consist'),
                ({"finalizers": ["bare"]}, 'metadata.finalizers[0]: Invalid value: "bare": name is neither a standard'),
            ):
                error = await refused(harness.patch(POD, "web", {"metadata": wrong}))
                assert (error.code, error.reason) == (422, "Invalid")
                assert told in error.message
            for selection in ({"label_selector": "a b"}, {"field_selector": "spec.bogus=1"}, {"field_selector": "x"}):
                error = await refused(harness.names(POD, **selection))
                assert (error.code, error.reason) == (400, "BadRequest")

        play(exchange)

    def test_a_revision_keeps_its_data(self, play: Play) -> None:
        async def exchange(harness: Harness) -> None:
            data = {"spec": {"template": {"a": 1}}}
            await harness.create(REVISION, {"metadata": {"name": "web-1"}, "revision": 1, "data": data})
            raised = await harness.patch(REVISION, "web-1", {"revision": 5}, STRATEGIC)
            assert (raised["revision"], raised["data"]) == (5, data)
            error = await refused(harness.patch(REVISION, "web-1", {"data": {"spec": None}}))
            assert (error.code, error.reason) == (422, "Invalid")
            assert "data: Invalid value" in error.message
            assert "field is immutable" in error.message

        play(exchange)


async def _one_of_each(harness: Harness) -> list[tuple[Resource, Json]]:
    lease: Json = {"metadata": {"name": "shard"}, "spec": {"holderIdentity": "one", "leaseDurationSeconds": 3}}
    return [
        (POD, await harness.create(POD, pod("web"))),
        (CONFIG_MAP, await harness.create(CONFIG_MAP, config_map("web"))),
        (CLONE_SET, await harness.create(CLONE_SET, cloneset("web"))),
        (LEASE, await harness.create(LEASE, lease)),
    ]
