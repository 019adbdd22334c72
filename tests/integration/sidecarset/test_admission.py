"""SidecarSets as kubectl writes and reads them (sidecarset.md §1 to §4).

Covers the words of refusals, both versions, columns, explain, and the articles' manifests. SidecarSets have no
namespace: each is named after the namespace of its test, and selects only pods in it.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from tests.support.fleet import Fleet
from tests.support.workspace import Workspace, watched
from tests.testkit.documents import Json
from tests.testkit.manifests import article

DENIED = 'admission webhook "vsidecarset.kb.io" denied the request: '
LOG = {"name": "log", "image": "busybox:1.36"}
HASHES = ("kruise.io/sidecarset-hash", "kruise.io/sidecarset-hash-without-image")

pytestmark = pytest.mark.timeout(300)  # the first one waits for the control plane, too


@pytest.fixture
def space(request: pytest.FixtureRequest, shared: Fleet) -> Iterator[Workspace]:
    with watched(shared.cluster, request.node.nodeid, CLONE_SET) as made:
        try:
            yield made
        finally:
            made.kubectl("delete", "sidecarset", "--ignore-not-found", made.name, f"{made.name}-2")


def sidecarset(space: Workspace, version: str = "v1beta1", name: str = "", **spec: Any) -> Json:
    where = {"matchLabels": {"kubernetes.io/metadata.name": space.name}}
    given = {"selector": {"matchLabels": {"app": "a"}}, "namespaceSelector": where, "containers": [LOG]}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "SidecarSet",
        "metadata": {"name": name or space.name},
        "spec": given | spec,
    }


def refused(space: Workspace, document: Json) -> str:
    return space.refused("create", "--validate=false", "-f", "-", stdin=json.dumps(document))


def shown(space: Workspace, version: str) -> Json:
    return space.read(f"sidecarsets.{version}.apps.kruise.io", space.name)


def test_refusals(space: Workspace):
    """One from each of the schema, the validation, and what other objects say; several faults are one message."""
    both = {"updateStrategy": {"selector": {"matchLabels": {"a": "b"}}, "partition": "0%"}}
    nobody = {"injectionStrategy": {"revision": {"revisionName": "nobody-1"}}}
    rows: list[tuple[Json, str]] = [
        (sidecarset(space, selector={}), f"{DENIED}spec.selector: Invalid value: {{}}: empty selector"),
        (sidecarset(space, containers=[LOG, LOG]), f'{DENIED}spec.containers[1].name: Duplicate value: "log"'),
        (sidecarset(space, "v1alpha1", **both), "selector and partition cannot be used together"),
        (sidecarset(space, "v1alpha1", **nobody), "cannot find specific ControllerRevision"),
        (sidecarset(space, containers=[{"name": 5}]), "name: 5 should be of type str"),
    ]
    for document, message in rows:
        assert message in refused(space, document)
    said = refused(space, sidecarset(space, name=f"{space.name}.x", updateStrategy={"partition": -1}))
    assert f"{DENIED}[metadata.name: Invalid value: " in said
    assert "spec.updateStrategy.partition: Invalid value: -1" in said


def test_what_never_changes(space: Workspace):
    space.apply(sidecarset(space, containers=[LOG, LOG | {"name": "b"}]))
    space.apply(sidecarset(space))
    assert "containers cannot be added or renamed" in space.refuses(
        sidecarset(space, containers=[LOG, LOG | {"name": "c"}]), "apply"
    )
    hot = {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e:1"}
    said = space.refuses(sidecarset(space, containers=[LOG | {"upgradeStrategy": hot}]), "apply")
    assert "is immutable: log has ColdUpgrade" in said


def test_two_sets_and_the_same_pods(space: Workspace):
    space.apply(sidecarset(space))
    second = f"{space.name}-2"
    assert f"container log already exists in SidecarSet {space.name}" in refused(space, sidecarset(space, name=second))
    crossed = sidecarset(space, name=second, containers=[], initContainers=[LOG])
    assert f"container log already exists in SidecarSet {space.name}" in refused(space, crossed)
    space.apply(sidecarset(space, name=second, selector={"matchLabels": {"app": "b"}}))


def test_a_white_list_of_administrators(space: Workspace):
    """The list is global, so the rule is for this SidecarSet alone."""
    rule = {"selector": {"matchLabels": {"test": space.name}}, "allowedAnnotationKeyExprs": ["^mesh/"]}
    data = {"SidecarSet_PatchPodMetadata_WhiteList": json.dumps({"rules": [rule]})}
    metadata = {"name": "kruise-configuration", "namespace": "kruise-system"}
    listed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    space.cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))
    document = sidecarset(space, patchPodMetadata=[{"annotations": {"mesh/a": "1"}}])
    assert "spec.patchPodMetadata: Required value" in refused(space, document)
    document["metadata"]["labels"] = {"test": space.name}
    assert space.apply(document)["spec"]["patchPodMetadata"][0]["patchPolicy"] == "Retain"
    document["spec"]["patchPodMetadata"].append({"annotations": {"other": "1"}})
    said = space.refuses(document, "apply")
    assert "annotation other is not in the white list" in said


def test_defaults_and_both_versions(space: Workspace):
    document = sidecarset(space, "v1alpha1", namespace=space.name)
    del document["spec"]["namespaceSelector"]
    document["metadata"]["labels"] = {"apps.kruise.io/sidecarset-custom-version": "3"}
    space.apply(document)
    beta, alpha = shown(space, "v1beta1"), shown(space, "v1alpha1")
    assert beta["spec"]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": space.name}
    assert beta["spec"]["customVersion"] == "3"
    assert "labels" not in beta["metadata"]
    assert "namespace" not in alpha["spec"], "it stays a selector"
    assert alpha["spec"]["namespaceSelector"] == beta["spec"]["namespaceSelector"]
    assert alpha["metadata"]["labels"] == {"apps.kruise.io/sidecarset-custom-version": "3"}
    assert beta["spec"]["updateStrategy"] == {"type": "RollingUpdate", "partition": 0, "maxUnavailable": 1}
    assert beta["spec"]["revisionHistoryLimit"] == 10
    (container,) = beta["spec"]["containers"]
    assert (container["imagePullPolicy"], container["podInjectPolicy"]) == ("IfNotPresent", "BeforeAppContainer")
    hashes = [beta["metadata"]["annotations"][key] for key in HASHES]
    assert hashes == [
        "bzv6592862b6w846cw4xx5w9647xz74dxc6d24fw7b6bcx554fxd2z4z4vbd8ff4",
        "4424wfff8b57d47vb7684zc4bb5478vxwwdcz7dd2xdwbf4d4446424d4w29cwd5",
    ]


def test_hashes_of_a_client_are_not_believed(space: Workspace):
    document = sidecarset(space)
    document["metadata"]["annotations"] = dict.fromkeys(HASHES, "stale")
    first = space.apply(document)["metadata"]["annotations"]
    assert "stale" not in first.values()
    document["spec"]["containers"] = [LOG | {"image": "busybox:1.37"}]
    second = space.apply(document)["metadata"]["annotations"]
    assert [first[key] == second[key] for key in HASHES] == [False, True]


def test_applying_a_manifest_once_more_changes_nothing(space: Workspace):
    volumes = [{"name": "v"}, {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes]
    document = sidecarset(space, volumes=volumes, containers=[LOG | {"volumeMounts": mounts}])
    first, again = space.apply(document), space.apply(document)
    assert first["metadata"]["generation"] == again["metadata"]["generation"] == 1
    assert first["spec"]["volumes"][0] == {"name": "v", "emptyDir": {}}


def test_fields_that_pods_do_not_have(space: Workspace):
    warned = space.kubectl("create", "-f", "-", stdin=json.dumps(sidecarset(space, containers=[LOG | {"future": 1}])))
    assert space.name in warned
    assert shown(space, "v1beta1")["spec"]["containers"][0]["future"] == 1


def test_columns_and_explain(space: Workspace):
    space.apply(sidecarset(space))
    for version in ("v1alpha1", "v1beta1"):
        header, row = space.kubectl("get", f"sidecarsets.{version}.apps.kruise.io", space.name).splitlines()
        assert header.split() == ["NAME", "MATCHED", "UPDATED", "READY", "AGE"]
        assert row.split()[0] == space.name
    said = space.kubectl("explain", "sidecarset.spec.containers.shareVolumePolicy.type")
    assert "enabled" in said
    refusal = space.refused("explain", "sidecarset.spec.namespace", "--api-version=apps.kruise.io/v1beta1")
    assert 'field "namespace" does not exist' in refusal


def in_words_of(article: str) -> Callable[[Workspace], Json]:
    """Return the article's manifest under another name, for another namespace."""

    def made(space: Workspace) -> Json:
        document = yaml.safe_load(article)
        document["metadata"]["name"] = space.name
        document["spec"]["namespace"] = space.name
        return document

    return made


@pytest.mark.parametrize(
    ("article", "container"),
    [
        pytest.param(
            in_words_of(article("sidecarset/log-volume")),
            {"command": ["sleep", "999d"], "upgradeStrategy": {"upgradeType": "ColdUpgrade"}},
            id="test-sidecarset",
        ),
        pytest.param(
            in_words_of(article("sidecarset/sharing")),
            {"shareVolumePolicy": {"type": "enabled"}, "podInjectPolicy": "BeforeAppContainer"},
            id="sidecarset",
        ),
        pytest.param(
            in_words_of(article("sidecarset/hot-upgrade")),
            {
                "imagePullPolicy": "Always",
                "upgradeStrategy": {
                    "upgradeType": "HotUpgrade",
                    "hotUpgradeEmptyImage": "openkruise/hotupgrade-sample:empty",
                },
            },
            id="hotupgrade-sidecarset",
        ),
    ],
)
def test_manifests_of_the_articles(space: Workspace, article: Callable[[Workspace], Json], container: Json):
    stored = space.apply(article(space))
    assert stored["apiVersion"] == "apps.kruise.io/v1alpha1"
    (shown_container,) = stored["spec"]["containers"]
    assert container.items() <= shown_container.items()


def test_the_article_s_annotations_need_a_white_list(space: Workspace):
    document = in_words_of(article("sidecarset/metadata"))(space)
    said = refused(space, document)
    assert f"{DENIED}spec.patchPodMetadata: Required value: annotations are not in the white list" in said


def test_the_article_s_short_hand_is_no_policy(space: Workspace):
    document = in_words_of(article("sidecarset/sharing"))(space)
    document["spec"]["containers"][0]["shareVolumePolicy"] = True
    assert "shareVolumePolicy" in space.refused("apply", "--validate=false", "-f", "-", stdin=json.dumps(document))
