"""Copies of pull secrets, in the one namespace whose secrets nodes may get (imagepull.md §6).

One copy serves all jobs that name the same source; annotations list these jobs, and the last of them deletes the copy.
"""

from collections.abc import Iterable, Sequence

import msgspec

from flotilla_common.api.core import Secret
from flotilla_common.api.documents import Json, merge_patch
from flotilla_common.api.kinds.nodeimage.types import BATCH, SecretReference
from flotilla_common.api.resources import SECRET
from flotilla_common.control.plan import Action, Chain, Intent
from flotilla_common.control.writes import create_of, delete_of, patch_of
from flotilla_jobs.imagepull.snapshot import PullJobSnapshot
from flotilla_jobs.naming import free_name

SOURCE = "imagepulljobs.kruise.io/source-key"
REFERENCES = "imagepulljobs.kruise.io/references"
MODE = "imagepulljobs.kruise.io/mode"

_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class PullSecrets(msgspec.Struct, frozen=True, kw_only=True):
    """The references that nodes get, and the writes that make them valid."""

    references: Sequence[SecretReference] = ()
    chains: tuple[Chain, ...] = ()
    unread: Sequence[str] = ()  # sources that have not been read yet
    absent: Sequence[str] = ()  # sources that do not exist


def references_of(copy: Secret) -> list[str]:
    """Return `<namespace>/<name>` of the jobs that use a copy."""
    return [key for key in copy.metadata.annotations.get(REFERENCES, "").split(",") if key]


def copy_secrets(snapshot: PullJobSnapshot) -> PullSecrets:
    """Return the references and writes that a running job needs; sources that do not exist are left out."""
    meta, names = snapshot.job.metadata, list(dict.fromkeys(snapshot.job.spec.pull_secrets))
    if meta.namespace == snapshot.options.secrets_namespace:
        return PullSecrets(references=[SecretReference(namespace=meta.namespace, name=name) for name in names])
    unread = [name for name in names if name not in snapshot.sources]
    if unread:
        return PullSecrets(unread=unread)
    copies = _Copies(snapshot)
    chains: list[Chain] = [
        (action,) for action in copies.released(wanted={f"{meta.namespace}/{name}" for name in names})
    ]
    references: list[SecretReference] = []
    for name in names:
        source = snapshot.sources[name]
        if source is None:
            continue
        reference, action = copies.supplied(source)
        references.append(reference)
        chains += [(action,)] if action is not None else []
    absent = [name for name in names if snapshot.sources[name] is None]
    return PullSecrets(references=references, chains=tuple(chains), absent=absent)


def release(snapshot: PullJobSnapshot) -> tuple[Chain, ...]:
    """Return the writes that remove a finished job from all its copies."""
    return tuple((action,) for action in _Copies(snapshot).released(wanted=()))


class _Copies:
    """The writes to copies on behalf of one job."""

    def __init__(self, snapshot: PullJobSnapshot) -> None:
        self._snapshot = snapshot
        self._namespace = snapshot.options.secrets_namespace
        self._key = f"{snapshot.job.metadata.namespace}/{snapshot.job.metadata.name}"

    def released(self, wanted: Iterable[str]) -> Iterable[Action]:
        """Yield the writes that remove the job from copies whose source it does not need."""
        kept = set(wanted)
        for copy in self._snapshot.copies:
            if self._key in references_of(copy) and copy.metadata.annotations.get(SOURCE, "") not in kept:
                yield self._without_us(copy)

    def supplied(self, source: Secret) -> tuple[SecretReference, Action | None]:
        """Return the reference to the copy of a source, and the write that the copy needs."""
        copy = self._copy_of(source)
        if copy is None:
            name = free_name(source.metadata.name, f"{_key_of(source)}#", self._snapshot.taken)
            return SecretReference(namespace=self._namespace, name=name, mode=BATCH), self._created(source, name)
        mode = copy.metadata.annotations.get(MODE, "")
        reference = SecretReference(namespace=self._namespace, name=copy.metadata.name, mode=mode)
        return reference, self._refreshed(copy, source)

    def _copy_of(self, source: Secret) -> Secret | None:
        key = _key_of(source)
        copies = [copy for copy in self._snapshot.copies if copy.metadata.annotations.get(SOURCE) == key]
        ours = [copy for copy in copies if self._key in references_of(copy)]
        # Old versions may have left several: prefer the one that the job uses already, else the first.
        return next(iter([*ours, *copies]), None)

    def _created(self, source: Secret, name: str) -> Action:
        # kubectl's last-applied annotation repeats the data, and would be taken for this object's own.
        annotations = {key: value for key, value in source.metadata.annotations.items() if key != _APPLIED}
        body: Json = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": self._namespace,
                "labels": dict(source.metadata.labels),
                "annotations": annotations | {SOURCE: _key_of(source), REFERENCES: self._key, MODE: BATCH},
            },
            "type": source.type,
            "data": dict(source.data),
        }
        if source.immutable:
            body["immutable"] = True
        return create_of(SECRET, body, Intent.IMAGE_PULL, "copy a pull secret for nodes")

    def _refreshed(self, copy: Secret, source: Secret) -> Action | None:
        """Return the write that updates the copy's data and adds the job to its users, or None if it is current."""
        if copy.type != source.type or (copy.immutable and copy.data != source.data):
            return self._deleted(copy)  # cannot be changed; the next pass creates a new one
        body: Json = {}
        if copy.data != source.data:
            body["data"] = merge_patch(dict(copy.data), dict(source.data))
        users = references_of(copy)
        if self._key not in users:
            body["metadata"] = {"annotations": {REFERENCES: ",".join(sorted([*users, self._key]))}}
        return self._patched(copy, body) if body else None

    def _without_us(self, copy: Secret) -> Action:
        users = [key for key in references_of(copy) if key != self._key]
        if not users:
            return self._deleted(copy)
        return self._patched(copy, {"metadata": {"annotations": {REFERENCES: ",".join(sorted(users))}}})

    def _patched(self, copy: Secret, body: Json) -> Action:
        """Return a patch bound to the planned version: another job may add itself at the same time."""
        cause = "keep a copy of a pull secret"
        return patch_of(SECRET, copy.metadata, Intent.IMAGE_PULL, cause, body=body, on_version=True)

    def _deleted(self, copy: Secret) -> Action:
        cause = "the copy of a pull secret is no longer needed"
        return delete_of(SECRET, copy.metadata, Intent.CLEAN_UP, cause, on_version=True)


def _key_of(source: Secret) -> str:
    return f"{source.metadata.namespace}/{source.metadata.name}"
