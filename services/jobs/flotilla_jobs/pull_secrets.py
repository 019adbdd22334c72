"""Hands pull secrets to the agent that needs them (docs/adr/0007).

A node gets the secrets that its own NodeImage refers to, from the one namespace where copies are made, and nothing
else. They are sealed for the key of the requesting process, so that the bus sees only ciphertext and stores nothing.
"""

from collections.abc import Sequence

import msgspec
import structlog

from flotilla_common.api.core import Secret
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage, SecretReference
from flotilla_common.api.resources import SECRET
from flotilla_common.control.controller_context import ResponderContext
from flotilla_common.control.spec import Responder
from flotilla_common.control.watches import Watch
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import SECRETS, Answer, PullSecret, SecretsAnswer, SecretsRequest
from flotilla_common.node.sealing import seal
from flotilla_common.node.serving import Lookups, Sender, TooOften
from flotilla_jobs.enabled import images_off

TYPES = frozenset({"kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"})
"""Secret types that hold registry credentials; others are of no use to a node."""

_IMAGES = Watch(NODE_IMAGE, NodeImage)

_COPIES = Watch(SECRET, Secret, private="daemon_config_namespace")


class SecretServer(msgspec.Struct, frozen=True):
    """Answers requests for pull secrets; any replica may."""

    images: Table[NodeImage]
    secrets: Table[Secret]  # of `namespace`
    namespace: str
    lookups: Lookups

    async def receive(self, sender: Sender, request: SecretsRequest) -> Answer:
        """Return the secrets that exist, or a refusal if the node's NodeImage does not refer to all of them."""
        if sender.name != sender.node:
            return Answer(why=f"node {sender.node} may not ask for {sender.name}")
        try:
            refused = await self._refused(sender.node, request.references)
            if refused:
                structlog.get_logger().warning("pull secrets refused", node=sender.node, references=refused)
                return Answer(why=f"the node's NodeImage does not refer to {', '.join(refused)}")
            secrets = [await self._secret(sender.node, reference) for reference in request.references]
        except (ApiError, Unreachable, TooOften) as error:
            return Answer(why=f"cannot read from the apiserver: {error}", again=True)
        try:
            return SecretsAnswer(
                accepted=True, sealed=seal(request.public_key, [secret for secret in secrets if secret])
            )
        except ValueError as fault:
            return Answer(why=str(fault))

    async def _refused(self, node: str, references: Sequence[SecretReference]) -> list[str]:
        """Return the references that the node's NodeImage does not have."""
        refused = self._not_referred(node, references)
        # Our mirror may be behind the agent's, so the NodeImage is read before a refusal.
        if refused:
            await self.lookups.read(node, NODE_IMAGE, ("", node))
            refused = self._not_referred(node, references)
        return refused

    def _not_referred(self, node: str, references: Sequence[SecretReference]) -> list[str]:
        image = self.images.get("", node)
        specs = image.spec.images.values() if image is not None else ()
        referred = {(reference.namespace, reference.name) for spec in specs for reference in spec.pull_secrets}
        keys = [(reference.namespace, reference.name) for reference in references]
        return [
            f"{namespace}/{name}"
            for namespace, name in keys
            if namespace != self.namespace or (namespace, name) not in referred
        ]

    async def _secret(self, node: str, reference: SecretReference) -> PullSecret | None:
        key = (reference.namespace, reference.name)
        secret = self.secrets.get(*key)
        if secret is None:
            await self.lookups.read(node, SECRET, key)
            secret = self.secrets.get(*key)
        if secret is None or secret.type not in TYPES:
            return None
        return PullSecret(namespace=key[0], name=key[1], type=secret.type, data=secret.data)


async def _hand_out_secrets(context: ResponderContext) -> None:
    namespace = context.settings.daemon_config_namespace
    server = SecretServer(context.table(_IMAGES), context.table(_COPIES), namespace, Lookups(context.read))
    await context.answer(SECRETS, SecretsRequest, server.receive, by_any_replica=True)


PULL_SECRETS = Responder(
    name="pull-secrets", watches=(_IMAGES, _COPIES), answers=(SECRETS,), off=images_off, build=_hand_out_secrets
)
