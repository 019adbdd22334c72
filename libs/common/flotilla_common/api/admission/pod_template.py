"""Sets defaults of pod templates, claim templates and their parts (common.md §13, webhooks.md §9).

All functions change the given document in place, and only members that are absent (or null, or empty where the API
cannot tell empty from absent). A template's containers pull `Always` with any tag: that value is part of the
revision hash, so it must not depend on the image.
"""

import contextlib
from collections.abc import Iterable
from decimal import ROUND_CEILING

from flotilla_common.api import quantity
from flotilla_common.api.documents import Json, ensured, mapping, mappings, member, text
from flotilla_common.gates import Gates

_MODES = ("secret", "configMap", "downwardAPI", "projected")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
"""The members of a container that are probes."""

_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def default_templates(spec: Json, old: Json | None, gates: Gates) -> None:
    """Set the defaults of pod and claim templates in the spec of a workload.

    `old` is the stored object of an update: an unchanged pod template is left as it is stored, so that an upgrade of
    the defaults never rolls pods.
    """
    drop_directive(spec)
    unchanged = old is not None and mapping(old.get("spec")).get("template") == spec.get("template")
    if unchanged or gates.on("TemplateNoDefaults"):
        return
    default_template(mapping(spec.get("template")), host_ports=gates.on("DefaultHostNetworkHostPortsInPodTemplates"))
    for claim in mappings(spec.get("volumeClaimTemplates")):
        default_claim(claim)


def drop_directive(spec: Json) -> None:
    """Remove `$patch` from the pod template in the spec of a workload.

    The data of a ControllerRevision has it for strategic merge patches. Clients roll back with that data as a JSON
    merge patch, the only patch type that custom resources support, and there it is an ordinary member.
    """
    mapping(spec.get("template")).pop("$patch", None)


def default_template(template: Json, *, host_ports: bool = False) -> None:
    """Set the defaults of a pod template.

    `host_ports`: gate DefaultHostNetworkHostPortsInPodTemplates.
    """
    # Clients written in Go see these two in every stored template, and revisions were hashed with them.
    ensured(template, "metadata").setdefault("creationTimestamp", None)
    spec = ensured(template, "spec")
    _fill(spec, dnsPolicy="ClusterFirst", restartPolicy="Always", schedulerName="default-scheduler")
    _fill(spec, terminationGracePeriodSeconds=30)
    ensured(spec, "securityContext")
    for container in mappings(spec.get("containers")):
        _fill(container, imagePullPolicy="Always")
    for container in mappings(spec.get("initContainers")):
        _fill(container, imagePullPolicy=pull_policy(text(container.get("image"))))
    for container in containers_of(spec):
        default_container(container)
    for volume in mappings(spec.get("volumes")):
        default_volume(volume)
    if host_ports and spec.get("hostNetwork") is True:
        fill_host_ports(spec)


def default_claim(claim: Json) -> None:
    """Set the defaults of a claim template."""
    ensured(claim, "metadata").setdefault("creationTimestamp", None)  # as in pod templates
    _fill(ensured(claim, "status"), phase="Pending")
    _default_resources(member(claim, "spec", "resources"))


def containers_of(spec: Json) -> list[Json]:
    """Return the init containers and regular containers of a pod spec."""
    return mappings(spec.get("initContainers")) + mappings(spec.get("containers"))


def fill_host_ports(spec: Json) -> None:
    """Give every port of a host-network pod the host port that it will have anyway."""
    for container in containers_of(spec):
        for port in mappings(container.get("ports")):
            if not port.get("hostPort") and "containerPort" in port:
                port["hostPort"] = port["containerPort"]


def pull_policy(image: str) -> str:
    """Return the usual pull policy: Always for `latest` or a missing tag, else IfNotPresent."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    moving = tag == "latest" or not (tag or digest)
    return "Always" if moving else "IfNotPresent"


def default_container(container: Json, probes: Iterable[str] = PROBES) -> None:
    """Set the defaults of a container and of these of its probes, except its pull policy."""
    _fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
    for port in mappings(container.get("ports")):
        _fill(port, protocol="TCP")
    for env in mappings(container.get("env")):
        default_field_ref(mapping(env.get("valueFrom")))
    for name in probes:
        if probe := mapping(container.get(name)):
            _fill(probe, **_PROBE_DEFAULTS)
            _default_http(probe)
    for hook in mapping(container.get("lifecycle")).values():
        _default_http(mapping(hook))
    _default_resources(ensured(container, "resources"))


def _default_http(handler: Json) -> None:
    if isinstance(handler.get("httpGet"), dict):
        _fill(handler["httpGet"], path="/", scheme="HTTP")


def default_field_ref(source: Json) -> None:
    """Set the defaults of a source that may be a field of the pod."""
    if isinstance(source.get("fieldRef"), dict):
        _fill(source["fieldRef"], apiVersion="v1")


def default_volume(volume: Json) -> None:
    """Set the defaults of a volume of a pod."""
    if all(volume[key] is None for key in volume if key != "name"):
        volume["emptyDir"] = {}
    if isinstance(volume.get("hostPath"), dict) and volume["hostPath"].get("type") is None:
        volume["hostPath"]["type"] = ""
    for kind in _MODES:
        # A mode of 0 is a choice of the user, unlike the numbers of a probe.
        if isinstance(volume.get(kind), dict) and volume[kind].get("defaultMode") is None:
            volume[kind]["defaultMode"] = 420
    for item in mappings(member(volume, "downwardAPI").get("items")):
        default_field_ref(item)
    for source in mappings(member(volume, "projected").get("sources")):
        if isinstance(source.get("serviceAccountToken"), dict):
            _fill(source["serviceAccountToken"], expirationSeconds=3600)
        for item in mappings(member(source, "downwardAPI").get("items")):
            default_field_ref(item)


def _default_resources(resources: Json) -> None:
    for kind in ("limits", "requests"):
        _round_quantities(member(resources, kind))


def _round_quantities(quantities: Json) -> None:
    """Round up quantities finer than a thousandth."""
    for name, written in quantities.items():
        with contextlib.suppress(ValueError):  # validation refuses invalid quantities
            milli = quantity.parse(str(written)) * 1000
            rounded = milli.to_integral_value(ROUND_CEILING)
            if rounded != milli:
                quantities[name] = f"{rounded:f}m"


def _fill(document: Json, **defaults: str | int) -> None:
    for key, value in defaults.items():
        if document.get(key) in (None, "") or (document.get(key) == 0 and key in _PROBE_DEFAULTS):
            document[key] = value
