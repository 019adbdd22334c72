"""All objects of `flotilla install`, in the order in which they are applied (install.md §1).

The webhook configurations come last: from then on the apiserver calls the webhook. Certificates are not here: the
webhook writes its own into Secret, configurations and CRDs.
"""

from collections.abc import Sequence

import msgspec

from flotilla_cli.install import endpoint, policies, rbac
from flotilla_common.api import crds
from flotilla_common.api.documents import Json
from flotilla_common.api.webhooks import (
    CONVERT_PATH,
    MUTATING_CONFIGURATION,
    SERVICE,
    VALIDATING_CONFIGURATION,
    mutating_entries,
    path_of,
    validating_entries,
)
from flotilla_common.gates import Gates


def manifests(gates: Gates, webhook_url: str = "", *, keep_managed_fields: bool = False) -> list[Json]:
    """Return all objects.

    With `webhook_url` (https://host:port) the apiserver calls that instead of the Service. With `keep_managed_fields`
    there is no policy that removes those of new pods.
    """
    return [
        *_namespaces(),
        *definitions(webhook_url),
        *rbac.objects(gates),
        *policies.own_leases(),
        _service(),
        *([] if keep_managed_fields else policies.no_managed_fields()),
        _configuration(MUTATING_CONFIGURATION, mutating_entries(), webhook_url),
        _configuration(VALIDATING_CONFIGURATION, validating_entries(gates), webhook_url),
    ]


def definitions(webhook_url: str = "") -> list[Json]:
    """Return the CRDs."""
    found = crds.manifests()
    for definition in found if webhook_url else ():
        conversion = definition["spec"]["conversion"]
        if conversion["strategy"] == "Webhook":
            conversion["webhook"]["clientConfig"] = {"url": webhook_url + CONVERT_PATH}
    return found


def as_yaml(documents: Sequence[Json]) -> str:
    """Encode objects as one stream of YAML documents."""
    return "---\n".join(msgspec.yaml.encode(document).decode() for document in documents)


def _namespaces() -> list[Json]:
    # The label keeps the webhook out of its own namespace: its pods must start while it is down.
    own = {"name": rbac.NAMESPACE, "labels": {"control-plane": "openkruise"}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": own},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": rbac.SECRETS_NAMESPACE}},
    ]


def _service() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": rbac.NAMESPACE},
        "spec": {
            "selector": {"control-plane": "controller-manager"},
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 9876}],
        },
    }


def _configuration(name: str, entries: list[Json], webhook_url: str) -> Json:
    kind = "MutatingWebhookConfiguration" if name == MUTATING_CONFIGURATION else "ValidatingWebhookConfiguration"
    webhooks = entries
    if webhook_url:
        webhooks = [entry | {"clientConfig": {"url": webhook_url + path_of(entry)}} for entry in entries]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "annotations": {endpoint.TEMPLATE: endpoint.as_template(webhooks)}},
        "webhooks": webhooks,
    }
