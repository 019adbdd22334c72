"""The account of a service as the chart makes it, for a service that runs as a process beside a control plane."""

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.support.chart import Rendered
from tests.support.cluster import Cluster
from tests.testkit.documents import Json

HOURS = "2h"
"""Validity of a token, longer than any test takes."""


def kubeconfig_of(service: str, cluster: Cluster, chart: Rendered) -> Path:
    """Create the account of a service with the rights that the chart gives it, and return a kubeconfig of it."""
    account = chart.one("ServiceAccount", f"flotilla-{service}")["metadata"]
    items = [chart.one("ServiceAccount", account["name"]), *_rights(account, chart)]
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    token = cluster.kubectl("create", "token", account["name"], "-n", account["namespace"], f"--duration={HOURS}")
    config = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    for user in config["users"]:
        user["user"] = {"token": token.strip()}
    file = cluster.kubeconfig.with_name(f"kubeconfig-{service}")
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file


def _rights(account: Json, chart: Rendered) -> Iterator[Json]:
    """Yield the bindings of an account, and their roles."""
    named = {(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in chart.objects}
    for (kind, namespace, _), one in named.items():
        subjects = one.get("subjects", ()) if kind in {"RoleBinding", "ClusterRoleBinding"} else ()
        if any((found["name"], found["namespace"]) == (account["name"], account["namespace"]) for found in subjects):
            yield one
            role = one["roleRef"]["kind"], namespace if one["roleRef"]["kind"] == "Role" else "", one["roleRef"]["name"]
            if role in named:  # else Kubernetes has it
                yield named[role]
