"""The annotation `runtime-containers-meta`: the agent's data about each container of a pod.

Pure functions of the pod, the last annotation and the runtime. Containers are matched by name: status is sorted by
name, the spec is not.
"""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.core import Container as SpecContainer
from flotilla_common.api.core import Pod
from flotilla_common.api.jsontext import go_json
from flotilla_common.api.keys import IN_PLACE_READY
from flotilla_common.workload.hashing import env_from_metadata, env_hash, object_hash
from flotilla_nodeagent.cri.types import Container


class Hashes(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Hashes of the spec that a container was started with, and of its environment from the pod's metadata."""

    plain_hash: int
    extracted_env_from_metadata_hash: int = 0  # 0: not known yet


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One container instance."""

    name: str
    container_id: str = msgspec.field(name="containerID")  # <runtime>://<id>
    restart_count: int
    hashes: Hashes


class RuntimeMeta(msgspec.Struct, frozen=True):
    """The annotation's value; entries in the order of the pod's status."""

    containers: list[Entry] = []

    def entry(self, name: str, container_id: str) -> Entry | None:
        """Return the entry of this instance, or None."""
        return next((each for each in self.containers if (each.name, each.container_id) == (name, container_id)), None)

    def encode(self) -> str:
        """Return the annotation's text."""
        return msgspec.json.encode(self).decode()


NONE = RuntimeMeta()
_decode = msgspec.json.Decoder(RuntimeMeta).decode


def decode_meta(text: str) -> RuntimeMeta:
    """Return the annotation, empty if it cannot be parsed."""
    try:
        return _decode(text) if text else NONE
    except msgspec.DecodeError:
        return NONE


def instances(pod: Pod) -> dict[str, str]:
    """Return the container IDs by name, of all containers that have one."""
    return {status.name: status.container_id for status in pod.status.container_statuses if status.container_id}


def settled(pod: Pod, meta: RuntimeMeta, *, env: bool) -> bool:
    """Report whether the annotation is complete and no container waits for a restart, so the runtime is not needed."""
    running = instances(pod)
    specs = {spec.name: spec for spec in pod.spec.containers}
    if len(meta.containers) != sum(name in specs for name in running):
        return False
    for name, container_id in running.items():
        if name not in specs:
            continue
        entry = meta.entry(name, container_id)
        if entry is None or (env and not entry.hashes.extracted_env_from_metadata_hash):
            return False
        if env and restart_due(pod, specs[name], entry):
            return False
    return True


def updating(pod: Pod) -> bool:
    """Report whether an in-place update is in progress (common.md §9.9)."""
    # Only then does a changed environment cause restarts.
    condition = pod.conditions.get(IN_PLACE_READY)
    return condition is not None and condition.status == "False"


def restart_due(pod: Pod, spec: SpecContainer, entry: Entry) -> bool:
    """Report whether the container's environment differs from the pod's metadata, and has to follow it."""
    known = entry.hashes.extracted_env_from_metadata_hash
    wanted = env_hash(spec, pod.metadata.labels, pod.metadata.annotations)
    return updating(pod) and known not in (0, wanted)


def entry_of(container: Container, container_id: str, env: int) -> Entry:
    """Return a new entry from the runtime's data."""
    return Entry(
        name=container.name,
        container_id=container_id,
        restart_count=container.restarts,
        hashes=Hashes(plain_hash=container.plain_hash, extracted_env_from_metadata_hash=env),
    )


def current_env_hash(spec: SpecContainer, environment: Mapping[str, str]) -> int:
    """Return the hash of the running container's environment."""
    entries: list[dict[str, str]] = []
    for name in sorted(env_from_metadata(spec)):
        value = environment.get(name, "")
        entries.append({"name": name, "value": value} if value else {"name": name})
    return object_hash(go_json(entries or None))


def parse_env(output: bytes) -> dict[str, str]:
    """Parse the output of `env`: one variable per line; further lines of a value are lost (nodeagent.md §5.4)."""
    variables: dict[str, str] = {}
    for line in output.decode(errors="replace").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals:
            variables.setdefault(name, value)
    return variables
