"""Builders for SidecarSets, pods and snapshots, and the notation of the worked examples (sidecarset.md §11).

`pods("A!x2 Ax3 B~")`: pods by the letter of their sidecar's image, oldest first. Behind the letter: `!` not ready, `~`
the kubelet has not restarted the sidecar yet, `?` more than the image of the sidecar differs, `P` pending, `F` failed,
`T` terminating.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.core import ControllerRevision, Namespace, Pod
from flotilla_common.api.kinds.sidecarset.revisions import canonical_revision, hash_annotations, revision_source
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_common.control.plan import Patch, Plan
from flotilla_common.workload.hashing import revision_hash
from flotilla_sidecar.sidecarset.plan import plan
from flotilla_sidecar.sidecarset.snapshot import Options, SidecarSetSnapshot
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, conditions, decoded, metadata
from tests.testkit.pods import container, container_status

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
HASH, PLAIN = "kruise.io/sidecarset-hash", "kruise.io/sidecarset-hash-without-image"
INJECTED, STATE = "kruise.io/sidecarset-injected-list", "kruise.io/sidecarset-inplace-update-state"
WORKING = "kruise.io/sidecarset-working-hotupgrade-container"
OWNER = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "name": "side", "uid": "uid-side"}
_TOKEN = re.compile(r"([A-C])([!~?PFT]*)(?:x(\d+))?")


def image(letter: str) -> str:
    return f"proxy:{letter}"


def sidecar(letter: str = "B", name: str = "proxy", **more: Any) -> Json:
    return {"name": name, "image": image(letter), **more}


def hot(letter: str, name: str = "mesh") -> Json:
    """Return a sidecar that is injected as two containers; `empty:1` is the image that does nothing."""
    strategy = {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}
    return sidecar(letter, name, upgradeStrategy=strategy)


class Builder:
    """A SidecarSet `side` for pods with `app: web`."""

    def __init__(self, containers: list[Json]) -> None:
        self.spec: Json = {
            "selector": {"matchLabels": {"app": "web"}},
            "containers": containers,
            "updateStrategy": {"type": "RollingUpdate"},
        }
        self.status: Json = {}
        self.metadata: Json = {"name": "side", "uid": "uid-side", "resourceVersion": "77", "generation": 3}

    def strategy(self, **members: Any) -> "Builder":
        self.spec["updateStrategy"].update(members)
        return self

    def m(self, value: int | str) -> "Builder":
        return self.strategy(maxUnavailable=value)

    def p(self, value: int | str) -> "Builder":
        return self.strategy(partition=value)

    def set(self, **members: Any) -> "Builder":
        self.spec.update(members)
        return self

    def meta(self, **members: Any) -> "Builder":
        self.metadata.update(members)
        return self

    def stored(self, **members: Any) -> "Builder":
        self.status.update(members)
        return self

    def document(self) -> Json:
        """Return the document as the webhook has it stored."""
        annotations = hash_annotations(self.spec) | self.metadata.get("annotations", {})
        metadata = self.metadata | {"annotations": annotations}
        return msgspec.json.decode(as_json({"metadata": metadata, "spec": self.spec, "status": self.status}))

    def build(self) -> SidecarSet:
        return msgspec.json.decode(as_json(self.document()), type=SidecarSet)


def side(letter: str = "B", *more: Json) -> Builder:
    return Builder([sidecar(letter), *more])


def hot_side(letter: str = "B", *more: Json) -> Builder:
    return Builder([hot(letter), *more])


def as_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def record(hash_: str, name: str = "side", revision: str = "side-1") -> Json:
    return {
        "updateTimestamp": "2026-03-01T11:00:00Z",
        "hash": hash_,
        "sidecarSetName": name,
        "sidecarList": ["proxy"],
        "controllerRevision": revision,
    }


def injected(hash_: str, plain: str, *, names: Iterable[str] = ("side",), revision: str = "side-1") -> dict[str, str]:
    """Return the annotations that injection leaves."""
    return {
        HASH: as_json({name: record(hash_, name, revision) for name in names}),
        PLAIN: as_json({name: record(plain, name) for name in names}),
        INJECTED: ",".join(names),
    }


def state(container: str, image_id: str, name: str = "side") -> dict[str, str]:
    """Return the annotation of a pod whose sidecar was changed while it ran this image."""
    last = {container: {"imageID": image_id}}
    return {STATE: as_json({name: {"revision": "r", "updateTimestamp": "t", "lastContainerStatuses": last}})}


def pods(text: str, base: Builder | None = None, *, labels: dict[int, dict[str, str]] | None = None) -> list[Pod]:
    """Return the pods of this SidecarSet by the notation; `labels` by their position."""
    found: list[Pod] = []
    for token in text.split():
        match = _TOKEN.fullmatch(token)
        assert match, token
        letter, flags, times = match.groups()
        for _ in range(int(times or 1)):
            number = len(found)
            more = (labels or {}).get(number, {})
            found.append(pod(f"p{number:02}", letter, flags, age=1000 - number, labels=more, base=base))
    return found


def pod(
    name: str = "p00",
    letter: str = "B",
    flags: str = "",
    *,
    age: int = 0,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    namespace: str = "default",
    base: Builder | None = None,
    **members: Any,
) -> Pod:
    """Return a pod with containers `main` and `proxy`."""
    # at equal phase and readiness the older pod is updated later
    sidecars = (
        [sidecar(letter)] if base is None else [{**one, "image": image(letter)} for one in base.spec["containers"]]
    )
    hashes = hash_annotations({"containers": sidecars})
    known = injected(hashes[HASH], "another" if "?" in flags else hashes[PLAIN])
    late = state("proxy", "id-before") if "~" in flags else {}
    ready = not set(flags) & set("!PF")
    running, running_id = ("proxy:before", "id-before") if "~" in flags else (image(letter), f"id-{letter}")
    since = NOW - timedelta(seconds=age)
    document = pods_of.pod(
        name,
        namespace,
        uid=f"uid-{namespace}-{name}",
        version=5,
        created=since,
        deleted=NOW if "T" in flags else None,
        labels={"app": "web", **(labels or {})},
        annotations=known | late | (annotations or {}),
        node="" if "P" in flags else "node-1",
        containers=[container("main", "shop:1"), *({**one} for one in sidecars)],
        phase="Pending" if "P" in flags else "Failed" if "F" in flags else "Running",
        conditions=conditions({"Ready": ready}, since),
        statuses=[
            container_status("main", "shop:1", "id-main", ready=True),
            *(container_status(one["name"], running, running_id, ready=ready and "~" not in flags) for one in sidecars),
        ],
    )
    for part, content in members.items():
        document[part] |= content
    return decoded(document, Pod)


def hot_pod(
    first: str,
    second: str,
    works: str = "mesh-1",
    *,
    hash_of: str = "A",
    versions: str = "1/0 0/1",
    running: tuple[str, str] | None = None,
    last: dict[str, str] | None = None,
    ready: bool = True,
    readies: tuple[bool, bool] = (True, True),
    **more: Any,
) -> Pod:
    """Return a pod with containers `main`, `mesh-1` and `mesh-2`, by their images (`v:1`).

    `running`: the images in the kubelet's report, where they differ. `versions`: version and versionalt, first
    container / second one.
    """
    hashes = hash_annotations({"containers": [hot(hash_of)]})
    version, other = (pair.split("/") for pair in versions.split())
    annotations = injected(hashes[HASH], hashes[PLAIN]) | {
        WORKING: as_json({"mesh": works}),
        "version.sidecarset.kruise.io/mesh-1": version[0],
        "version.sidecarset.kruise.io/mesh-2": version[1],
        "versionalt.sidecarset.kruise.io/mesh-1": other[0],
        "versionalt.sidecarset.kruise.io/mesh-2": other[1],
    }
    if last:
        remembered = {name: {"imageID": image_id} for name, image_id in last.items()}
        annotations[STATE] = as_json({"side": {"lastContainerStatuses": remembered}})
    images = {"mesh-1": first, "mesh-2": second}
    reported = dict(zip(images, running or (first, second), strict=True))
    document = pods_of.pod(
        "p00",
        uid="uid-p00",
        version=5,
        labels={"app": "web"},
        annotations=annotations | more.get("annotations", {}),
        node="node-1",
        containers=[container("main", "shop:1"), *(container(name, one) for name, one in images.items())],
        phase="Running",
        conditions=conditions({"Ready": ready}, LONG_AGO),
        statuses=[
            container_status("main", "shop:1", "id-main", ready=more.get("main_ready", True)),
            *(
                container_status(name, one, f"id-{one}", ready=good)
                for (name, one), good in zip(reported.items(), readies, strict=True)
            ),
        ],
    )
    return decoded(document, Pod)


def revision(builder: Builder, number: int, name: str = "", *, owned: bool = True, **labels: str) -> ControllerRevision:
    """Return the stored revision of what this SidecarSet injects."""
    data = canonical_revision(revision_source(builder.build()))
    name = name or f"side-{revision_hash(data, 0)}"
    document = {
        "metadata": metadata(
            name,
            "kruise-system",
            uid=f"uid-{name}",
            version=1,
            labels={"kruise.io/sidecarset-name": "side", **labels},
            ownerReferences=[OWNER | {"controller": True}] if owned else [],
        ),
        "revision": number,
        "data": msgspec.Raw(data),
    }
    return decoded(document, ControllerRevision)


def namespace(name: str, **labels: str) -> Namespace:
    metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}
    return msgspec.convert({"metadata": metadata}, Namespace)


def snapshot(
    builder: Builder,
    found: Iterable[Pod] | str = (),
    *,
    revisions: Iterable[ControllerRevision] | None = None,
    namespaces: Iterable[Namespace] = (),
    **more: Any,
) -> SidecarSetSnapshot:
    """Return a snapshot, by default with the stored revision of the newest spec."""
    return SidecarSetSnapshot(
        sidecar_set=builder.build(),
        pods=pods(found) if isinstance(found, str) else list(found),
        namespaces=list(namespaces),
        revisions=[revision(builder, 1)] if revisions is None else list(revisions),
        options=Options(),
        **more,
    )


def planned(builder: Builder, found: Iterable[Pod] | str = (), **more: Any) -> Plan:
    return plan(snapshot(builder, found, **more), NOW)


def pod_patches(result: Plan, subresource: str = "") -> list[Patch]:
    found = [one for one in result.actions if isinstance(one, Patch) and one.resource.kind == "Pod"]
    return [one for one in found if one.subresource == subresource]


def updated(result: Plan) -> list[str]:
    """Return the names of the pods whose sidecars this plan changes."""
    return [one.name for one in pod_patches(result) if HASH in one.body["metadata"].get("annotations", {})]


def counts(result: Plan) -> tuple[int, int, int, int]:
    """Return matched, updated, ready, updatedReady."""
    numbers = result.numbers
    return numbers["matched"], numbers["updated"], numbers["ready"], numbers["updatedReady"]
