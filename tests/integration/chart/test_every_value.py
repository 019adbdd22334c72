"""Each value of the chart has an effect: changed, it changes the rendered objects."""

import json
from functools import cache
from typing import Any

import pytest

from tests.support.helm import CHART, Helm

SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
NEEDS = {
    "autoscaling.webhook.": "autoscaling.webhook.enabled=true",
    "certManager.issuerRef": "certManager.enabled=true",
    "compact.": "profile=compact",
    "console.": "console.enabled=true",
    "console.impersonation.extraKeys": "console.impersonation.users={alice}",
    "console.signIn": "console.proxy.secret=x",
    "console.proxy.": "console.signIn={proxy},console.proxy.secret=x,console.tls.secret=x",
    "console.proxy.clientAuthority.": "console.proxy.clientAuthority.configMap=x",
    "console.proxy.clientAuthority": "console.proxy.clientAuthority.names={x}",
    "console.oidc.": "console.signIn={oidc},console.oidc.issuer=https://i,console.oidc.clientId=x,console.url=https://c",
    "console.oidc.key": "console.oidc.clientSecret=x",
    "console.oidc.authority.": "console.oidc.authority.configMap=x",
    "console.fixed.": "console.signIn={fixed},console.fixed.user=x",
    "console.sessions.key": "console.sessions.secret=x",
    "console.ingress.": "console.ingress.enabled=true",
    "console.httpRoute.": "console.httpRoute.enabled=true",
    "daemon.credentialProvider.": "daemon.credentialProvider.enable=true",
    "externalCerts.": r"featureGates=EnableExternalCerts=true",
    "webhookConfiguration.clientAuthority.key": "webhookConfiguration.clientAuthority.configMap=x",
    "webhookConfiguration.clientAuthority.names": "webhookConfiguration.clientAuthority.configMap=x",
    "monitoring.": "monitoring.enabled=true,monitoring.dashboards=true",
}
"""Values to switch on for values with these prefixes."""
OTHER = {
    "featureGates": "PodWebhook=false",
    "installation.namespace": "elsewhere",
    "certManager.issuerRef": {"name": "corp"},
    "console.url": "https://console.example.com",
    "console.signIn": ["proxy", "token"],
    "console.proxy.clientAuthority.names": ["proxy"],
    "console.oidc.issuer": "https://other",
    "console.oidc.scopes": ["openid"],
    "console.fixed.groups": ["viewers"],
    "console.sessions.duration": "1h",
    "console.httpRoute.hostnames": ["console.example.com"],
    "console.impersonation.users": ["alice"],
    "console.impersonation.groups": ["dev"],
    "console.impersonation.extraKeys": ["scopes"],
    "daemon.log.level": "debug",
    "manager.log.level": "debug",
    "manager.image.tag": "v9",
    "monitoring.interval": "1m",
    "nats.image.tag": "v9",
    "nats.memory.goLimit": "1GiB",
    "nats.memory.store": "2GB",
    "nats.storage.size": "1Gi",
    "nats.url": "tls://x:4222",
    "networkPolicy.apiserver": ["10.0.0.1/32"],
    "networkPolicy.nodes": ["10.0.0.0/16"],
    "services": {"jobs": {"replicas": 7}},
    "settings": {"kube-max-writes": 7},
    "webhookConfiguration.clientAuthority.names": ["kube-apiserver"],
}
"""Values that have a form of their own."""
BY_TYPE = {"string": "/other", "object": {"a": "b"}, "array": [{"a": "b"}]}


def leaves(schema: dict[str, Any], path: str = "") -> dict[str, dict[str, Any]]:
    """Return all values with a default."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in schema.get("properties", {}).items():
        inner = {path + name: value} if "default" in value else leaves(value, f"{path}{name}.")
        found |= inner
    return found


def another(name: str, value: dict[str, Any]) -> Any:
    """Return an allowed value that is not the default."""
    if name in OTHER:
        return OTHER[name]
    default = value["default"]
    if "enum" in value:
        return next(one for one in value["enum"] if one and one != default)
    if value["type"] == "boolean":
        return not default
    if value["type"] == "integer":
        return default - 1 if default == value.get("maximum") else default + 1
    return BY_TYPE[value["type"]]


LEAVES = leaves(SCHEMA)


@pytest.mark.parametrize("name", LEAVES)
def test_a_value_has_an_effect(chart: Helm, name: str) -> None:
    needs = [needed for begin, needed in NEEDS.items() if name.startswith(begin) and f"{name}=true" not in needed]
    definitions = () if name.startswith("crds.") else ("crds.managed=false",)  # they are half of the time
    base = [*definitions, *(part for needed in needs for part in needed.split(","))]
    others = [part for part in base if not part.startswith(f"{name}=")]  # --set would win over --set-json
    given = ("--set-json", f"{name}={json.dumps(another(name, LEAVES[name]))}")
    assert made(chart, *_set(base)) != made(chart, *_set(others), *given)


def _set(values: list[str]) -> tuple[str, ...]:
    return tuple(part for value in values for part in ("--set", value))


@cache
def made(chart: Helm, *given: str) -> str:
    """Render the chart, once for the same values."""
    return chart.run("template", "flotilla", str(CHART), *given)
