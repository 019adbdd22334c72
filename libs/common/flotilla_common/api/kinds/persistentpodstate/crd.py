"""The PersistentPodState CRD (persistentpodstate.md §1 and §2).

v1beta1 has a shorter name for lists of keys, and a stricter schema. kubectl prints its default columns, name and age.
"""

from flotilla_common.api.crds.schema import Schema, array, dictionary, integer, mapping, string, strings, struct
from flotilla_common.api.crds.version import Version

_POLICIES = ("WhenScaled", "WhenDeleted")


def version(name: str) -> Version:
    """Return one version of the CRD."""
    strict = name != "v1alpha1"
    return Version(name, _spec("keys" if strict else "nodeTopologyKeys", strict=strict), _status())


def _spec(keys: str, *, strict: bool) -> Schema:
    def topology(doc: str) -> Schema:
        return struct(doc, (keys,), **{keys: strings("Keys of node labels.")})

    term = struct(
        "One preference.",
        ("weight", "preference"),
        weight=integer("The weight for the scheduler, 1 to 100.", minimum=0 if strict else None),
        preference=topology("Pods should return to a node with the same values of these labels."),
    )
    annotation = struct("One annotation.", ("key",), key=string("Its key."))
    return struct(
        "The recorded state, and the pods.",
        ("targetRef",),
        targetRef=_target(),
        requiredPersistentTopology=topology("Pods must return to a node with the same values of these labels."),
        preferredPersistentTopology=array("Preferred places for pods to return to.", term),
        persistentPodAnnotations=array("Annotations of pods that are recorded, for other tools to read.", annotation),
        persistentPodStateRetentionPolicy=string(
            "WhenScaled: the state of a removed pod is dropped; WhenDeleted: only when the workload is deleted. "
            "Default: WhenScaled.",
            enum=_POLICIES if strict else (),
        ),
    )


def _target() -> Schema:
    return struct(
        "The workload, in the same namespace: a StatefulSet, or a kind that is configured. Never changes.",
        ("apiVersion", "kind", "name"),
        apiVersion=string("Its group and version."),
        kind=string("Its kind."),
        name=string("Its name."),
    )


def _status() -> Schema:
    state = struct(
        "The node of a pod when it was last ready.",
        nodeName=string("The node."),
        nodeTopologyLabels=mapping("The recorded labels of the node."),
        annotations=mapping("The recorded annotations of the pod."),
    )
    return struct(
        "The recorded states.",
        ("observedGeneration",),
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        podStates=dictionary("The states by the name of the pod.", state),
    )
