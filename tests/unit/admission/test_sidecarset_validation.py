"""SidecarSet validation: each line of sidecarset.md §4.1 to §4.3 is a row, and the worked examples of §11.5."""

from typing import Any

import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.kinds.sidecarset.admission import default_sidecarset
from flotilla_common.api.kinds.sidecarset.validation import validate
from flotilla_common.api.versions import V1BETA1
from tests.testkit.documents import Json

NATIVE = {"name": "net", "image": "n:1", "restartPolicy": "Always"}
NOT_NEGATIVE = "must be greater than or equal to 0"
PERCENT = "a valid percent string must be a numeric string followed by an ending '%'"
ROLLING = {"type": "RollingUpdate", "partition": 0, "maxUnavailable": 1}


def sidecarset(name: str = "side", **spec: Any) -> Json:
    """Return a valid SidecarSet with some members of its spec replaced, after defaulting."""
    given = {"selector": {"matchLabels": {"app": "a"}}, "containers": [{"name": "log", "image": "l:1"}]} | spec
    return default_sidecarset({"apiVersion": V1BETA1, "kind": "SidecarSet", "metadata": {"name": name}, "spec": given})


def container(**fields: Any) -> Json:
    return sidecarset(containers=[{"name": "log", "image": "l:1"} | fields])


def init(**fields: Any) -> Json:
    return sidecarset(initContainers=[{"name": "net", "image": "n:1"} | fields], updateStrategy={"type": "NotUpdate"})


def strategy(**fields: Any) -> Json:
    return sidecarset(updateStrategy=fields)


def revision(**fields: Any) -> Json:
    return sidecarset(injectionStrategy={"revision": fields})


def source(path: Any, version: Any = "v1") -> Json:
    field = {"apiVersion": version, "fieldPath": path}
    return container(transferEnv=[{"sourceContainerNameFrom": {"fieldRef": field}, "envName": "A"}])


def policy(**fields: Any) -> Json:
    made = {"targetContainersMode": "sum", "targetContainersNameRegex": ".*"}
    return made | {"resourcesExpr": {"limits": {"cpu": "cpu"}}} | fields


def expression(**expressions: Any) -> Json:
    return container(resourcesPolicy=policy(resourcesExpr={"limits": expressions}))


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(sidecarset(), id="plain"),
        pytest.param(sidecarset("Side-1"), id="capital letters in a name are the apiserver's business"),
        pytest.param(sidecarset(namespaceSelector={"matchLabels": {"a": "b"}}), id="namespaces"),
        pytest.param(
            sidecarset(initContainers=[NATIVE], updateStrategy={"type": "NotUpdate"}), id="native sidecar, not updated"
        ),
        pytest.param(sidecarset(initContainers=[{"name": "i", "image": "i:1"}]), id="init container"),
        pytest.param(sidecarset(containers=[], initContainers=[{"name": "i", "image": "i:1"}]), id="init only"),
        pytest.param(strategy(selector={"matchLabels": {"a": "b"}}, partition=0), id="selector and partition 0"),
        pytest.param(strategy(partition="100%", maxUnavailable="150%"), id="percentages"),
        pytest.param(strategy(partition=7, maxUnavailable=0), id="numbers"),
        pytest.param(strategy(maxUnavailable="0%"), id="nothing may be unavailable"),
        pytest.param(
            strategy(
                priorityStrategy={"weightPriority": [{"weight": 0, "matchSelector": {"matchLabels": {"a": "b"}}}]}
            ),
            id="weights",
        ),
        pytest.param(strategy(priorityStrategy={"orderPriority": [{"orderedKey": "a"}]}), id="order"),
        pytest.param(strategy(scatterStrategy=[{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]), id="scatter"),
        pytest.param(
            strategy(type="NotUpdate", partition="5", maxUnavailable=-1, selector={}, scatterStrategy=[{"key": ""}]),
            id="what is not updated is not judged",
        ),
        pytest.param(strategy(type="Other", partition=-1), id="an unknown type is not judged either"),
        pytest.param(revision(revisionName="r"), id="revision"),
        pytest.param(revision(customVersion="1", policy="Partial"), id="custom version"),
        pytest.param(container(podInjectPolicy="AfterAppContainer"), id="behind the others"),
        pytest.param(container(shareVolumePolicy={"type": "enabled"}), id="shared volumes"),
        pytest.param(container(shareVolumeDevicePolicy={"type": "some"}), id="devices are not judged"),
        pytest.param(init(podInjectPolicy="Somewhere", shareVolumePolicy={"type": "some"}), id="nor init containers"),
        pytest.param(source("metadata.labels['example.com/a']"), id="name from a label"),
        pytest.param(source("metadata.annotations['a']"), id="name from an annotation"),
        pytest.param(container(transferEnv=[{"sourceContainerNameFrom": {}}]), id="a source without a field"),
        pytest.param(container(resourcesPolicy=policy()), id="resources policy"),
        pytest.param(init(restartPolicy="Always", resourcesPolicy=policy()), id="of a native sidecar"),
        pytest.param(container(resourcesPolicy=policy(), resources={"limits": {}}), id="beside empty resources"),
        pytest.param(expression(cpu="max(cpu*30%, 50m)", memory="max(memory - 50Mi, 0)"), id="expressions"),
        pytest.param(expression(cpu="cpu - 100m"), id="less than a core"),
        pytest.param(expression(cpu="cpu * 2m"), id="what fails at injection only"),
        pytest.param(expression(cpu=""), id="no expression at all"),
    ],
)
def test_accepted(document: Json) -> None:
    assert validate(document) == []


NAME = "must match [a-zA-Z0-9\\-]+"
BOTH = "updateStrategy: Invalid value: {}: selector and partition cannot be used together"
EMPTY = "empty selector is not valid for sidecarset."
TOGETHER = "cannot be used together with resources.limits or resources.requests"
FIELD = "spec.containers[0].transferEnv[0].sourceContainerNameFrom.fieldRef"
RESOURCES = "spec.containers[0].resourcesPolicy"
FIELD_PATHS = "must be metadata.labels['<key>'] or metadata.annotations['<key>']"


@pytest.mark.parametrize(
    ("document", "faults"),
    [
        pytest.param(sidecarset("my.sidecar"), [f'metadata.name: Invalid value: "my.sidecar": {NAME}'], id="dots"),
        pytest.param(
            sidecarset("a" * 64),
            [f'metadata.name: Invalid value: "{"a" * 64}": must be no more than 63 characters'],
            id="a long name",
        ),
        pytest.param(
            sidecarset(initContainers=[NATIVE, NATIVE | {"name": "mesh"}]),
            [
                (
                    f"spec.updateStrategy: Required value: init container {name}: in-place upgrade of init containers "
                    "is not supported: set type NotUpdate"
                )
                for name in ("net", "mesh")
            ],
            id="native sidecars and a rolling update",
        ),
        pytest.param(sidecarset(selector=None), ["spec.selector: Required value: no selector defined"], id="selector"),
        pytest.param(sidecarset(selector={}), [f"spec.selector: Invalid value: {{}}: {EMPTY}"], id="empty selector"),
        pytest.param(
            sidecarset(selector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
            [
                (
                    f'{path}: Invalid value: {{"matchExpressions":[{{"key":"a","operator":"In"}}]}}: '
                    "matchExpressions[0].values: must be specified when `operator` is In"
                )
                for path in ("spec.selector", "spec.selector.selector")
            ],
            id="an expression",
        ),
        pytest.param(
            sidecarset(namespaceSelector={}),
            [f"spec.namespaceSelector: Invalid value: {{}}: {EMPTY}"],
            id="all namespaces are no selector",
        ),
        pytest.param(
            strategy(selector={}), [f"spec.updateStrategy.selector: Invalid value: {{}}: {EMPTY}"], id="of updates"
        ),
        pytest.param(
            revision(policy="Always"),
            [
                (
                    'revision: Invalid value: {"policy":"Always"}: revisionName and customVersion cannot be empty at '
                    "the same time"
                )
            ],
            id="no revision",
        ),
        pytest.param(
            revision(revisionName="r", policy="Some"),
            ['revision.policy: Invalid value: "Some": must be Always or Partial'],
            id="policy of revisions",
        ),
        pytest.param(
            strategy(partition=-1), [f"spec.updateStrategy.partition: Invalid value: -1: {NOT_NEGATIVE}"], id="negative"
        ),
        pytest.param(
            strategy(partition="5"),
            [f'spec.updateStrategy.partition: Invalid value: "5": {PERCENT}'],
            id="no percentage",
        ),
        pytest.param(
            strategy(maxUnavailable="-5%"),
            [f'spec.updateStrategy.maxUnavailable: Invalid value: "-5%": {PERCENT}'],
            id="a negative percentage",
        ),
        pytest.param(
            strategy(priorityStrategy={"weightPriority": [{}], "orderPriority": [{}]}),
            [
                (
                    "spec.updateStrategy.priorityStrategy: Required value: only one of weightPriority and "
                    "orderPriority can be used"
                )
            ],
            id="both orders",
        ),
        pytest.param(
            strategy(priorityStrategy={"weightPriority": [{"weight": 101}]}),
            [
                (
                    "spec.updateStrategy.priorityStrategy: Required value: weight must be valid number in the "
                    "[0, 100], got 101"
                )
            ],
            id="weight",
        ),
        pytest.param(
            strategy(scatterStrategy=[{"key": "a", "value": "1"}] * 2),
            ["spec.updateStrategy.scatterStrategy: Required value: duplicated key=a value=1"],
            id="scattered twice",
        ),
        pytest.param(
            sidecarset(containers=[]),
            ["spec: Required value: no initContainer or container defined for sidecarset"],
            id="no container",
        ),
        pytest.param(
            container(podInjectPolicy="Somewhere"),
            [
                (
                    'spec.containers[0].podInjectPolicy: Invalid value: "Somewhere": must be BeforeAppContainer or '
                    "AfterAppContainer"
                )
            ],
            id="where it is injected",
        ),
        pytest.param(
            container(shareVolumePolicy={"type": "some"}),
            ['spec.containers[0].shareVolumePolicy: Invalid value: "some": must be enabled or disabled'],
            id="sharing",
        ),
        pytest.param(source(""), [f"{FIELD}.fieldPath: Required value"], id="no path"),
        pytest.param(
            source("metadata.name"),
            [f'{FIELD}.fieldPath: Invalid value: "metadata.name": {FIELD_PATHS}'],
            id="another field",
        ),
        pytest.param(
            source("metadata.labels['']"),
            [
                (
                    f"{FIELD}.fieldPath: Invalid value: \"metadata.labels['']\": name part of '' must be at most 63 "
                    "alphanumeric characters, '-', '_' or '.', and start and end with an alphanumeric character"
                )
            ],
            id="no key",
        ),
        pytest.param(
            source("metadata.labels['a']", "v2"), [f'{FIELD}.apiVersion: Invalid value: "v2": must be v1'], id="version"
        ),
        pytest.param(
            container(resourcesPolicy={"targetContainersMode": "sum", "resourcesExpr": {}}),
            [
                f"{RESOURCES}.targetContainersNameRegex: Required value",
                f"{RESOURCES}.resourcesExpr: Invalid value: {{}}: limits or requests must be set",
            ],
            id="an empty policy",
        ),
        pytest.param(
            container(resourcesPolicy=policy(targetContainersNameRegex="(?=a)")),
            [(f"{RESOURCES}.targetContainersNameRegex: Invalid value: \"(?=a)\": '(?=a)': invalid perl operator: (?=")],
            id="a pattern",
        ),
        pytest.param(
            expression(memory="memory - 50Mi"),
            [
                (
                    f'{RESOURCES}.resourcesExpr.limits.memory: Invalid value: "memory - 50Mi": '
                    "the result of 'memory - 50Mi' is negative"
                )
            ],
            id="less than a byte",
        ),
        pytest.param(
            expression(cpu="memory"),
            [
                (
                    f'{RESOURCES}.resourcesExpr.limits.cpu: Invalid value: "memory": '
                    "'memory' has an undefined variable memory"
                )
            ],
            id="the other variable",
        ),
    ],
)
def test_refused(document: Json, faults: list[str]) -> None:
    assert [str(fault) for fault in validate(document)] == faults


@pytest.mark.parametrize(
    ("partition", "refused"), [(0, False), ("0%", True), (2, True), ("50%", True)], ids=["0", "0%", "2", "50%"]
)
def test_a_partition_beside_a_selector(partition: Any, refused: bool) -> None:
    faults = validate(strategy(selector={"matchLabels": {"a": "b"}}, partition=partition))
    assert [fault.path for fault in faults] == (["updateStrategy"] if refused else [])


@pytest.mark.parametrize("resources", [{"limits": {"cpu": 1}}, {"requests": {"cpu": 1}}], ids=["limits", "requests"])
def test_a_policy_beside_resources_is_judged_no_further(resources: Json) -> None:
    (fault,) = validate(container(resourcesPolicy=policy(targetContainersNameRegex=""), resources=resources))
    assert (fault.path, fault.body.endswith(TOGETHER)) == (RESOURCES, True)


def test_a_policy_is_for_containers_that_stay() -> None:
    (fault,) = validate(init(resourcesPolicy=policy(targetContainersNameRegex="")))
    assert fault.path == "spec.initContainers[0].resourcesPolicy"
    assert fault.body.endswith("only allowed for init containers with restartPolicy Always")


def test_a_revision_that_is_missing() -> None:
    faults = validate(revision(revisionName="r"), missing_revision=True)
    given = '{"policy":"Always","revisionName":"r"}'
    assert [str(fault).replace('{"revisionName":"r","policy":"Always"}', given) for fault in faults] == [
        f"revision: Invalid value: {given}: cannot find specific ControllerRevision"
    ]


def test_what_others_found_comes_along() -> None:
    fault = Fault("spec.containers[0].image", "Required value")
    assert validate(sidecarset(), looked_up=[fault]) == [fault]


def named(*names: str, **fields: Any) -> Json:
    return sidecarset(containers=[{"name": name, "image": f"{name}:1"} | fields for name in names])


def upgraded(kind: str | None) -> Json:
    return {"upgradeType": kind, "hotUpgradeEmptyImage": "e"}


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        pytest.param(named("a"), named("a", image="a:2"), [], id="image"),
        pytest.param(named("a", "b"), named("a"), [], id="one is removed"),
        pytest.param(
            named("a"),
            named("a", "b"),
            ['spec.containers.name: Invalid value: "b": containers cannot be added or renamed'],
            id="one is added",
        ),
        pytest.param(
            named("a"),
            named("b"),
            ['spec.containers.name: Invalid value: "b": containers cannot be added or renamed'],
            id="another name",
        ),
        pytest.param(
            named("a"),
            named("a", upgradeStrategy=upgraded("HotUpgrade")),
            [
                (
                    'spec.containers.upgradeStrategy.upgradeType: Invalid value: "HotUpgrade": is immutable: a has '
                    "ColdUpgrade"
                )
            ],
            id="from cold to hot",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "a"}]}},
            named("a", upgradeStrategy=upgraded("HotUpgrade")),
            [],
            id="from nothing to hot",
        ),
        pytest.param(
            named("a"),
            named("a") | {"spec": named("a")["spec"] | {"initContainers": [{"name": "new", "image": "i:1"}]}},
            [],
            id="init containers are free",
        ),
    ],
)
def test_changes(old: Json, new: Json, faults: list[str]) -> None:
    assert [str(fault) for fault in validate(new, old)] == faults


def test_a_custom_version_is_a_label_value() -> None:
    """As v1alpha1 it is a label, and the apiserver fails a LIST with an invalid one."""
    (fault,) = validate(sidecarset(customVersion="x/y"))
    assert fault.path == "spec.customVersion"
    assert not validate(sidecarset(customVersion="x/y"), sidecarset(customVersion="x/y"))
    assert validate(sidecarset(customVersion="x/y"), sidecarset(customVersion="1"))
