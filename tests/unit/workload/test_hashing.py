"""Hashes, against the vectors of common.md §7.2, §7.6 and §9.8."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.core import Container
from flotilla_common.workload.hashing import (
    claim_templates_hash,
    env_from_metadata,
    env_hash,
    object_hash,
    plain_hash,
    revision_data,
    revision_hash,
)
from tests.testkit.workloads import raw
from tests.unit.workload.build import container, env_from, template

SERIALISED = (
    '{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"sample"}},'
    '"spec":{"containers":[{"image":"nginx:alpine","imagePullPolicy":"Always","name":"nginx","resources":{},'
    '"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst",'
    '"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},'
    '"terminationGracePeriodSeconds":30}}}}'
)
WEB = template(
    container("nginx", "nginx:1.7.9", ports=[{"name": "web", "containerPort": 80, "protocol": "TCP"}]),
    metadata={"labels": {"app": "nginx"}},
    readinessGates=[{"conditionType": "InPlaceUpdateReady"}],
)


@pytest.mark.parametrize(
    ("content", "collisions", "expected"),
    [
        (template(), None, "d4d4fb5bd"),
        (template(), 0, "d4d4fb5bd"),
        (template(), 1, "d4d4fb5bf"),
        (template(container(image="nginx:mainline")), 0, "56dfb978d4"),
        (WEB, None, "67975fc8c9"),
    ],
    ids=["alpine", "zero collisions", "one collision", "mainline", "statefulset"],
)
def test_revision_hash(content: dict[str, Any], collisions: int | None, expected: str) -> None:
    assert revision_hash(revision_data(raw(content)), collisions) == expected


def test_revision_data_is_byte_for_byte_the_reference_s() -> None:
    assert revision_data(raw(template())).decode() == SERIALISED


def test_data_is_the_same_however_the_template_is_written() -> None:
    noisy = template(container(env=[], args=None, stdin=False, bogus=1), hostNetwork=False, volumes=[], nodeName="")
    assert revision_data(raw(noisy)).decode() == SERIALISED


def test_data_escapes_what_go_escapes() -> None:
    content = template(metadata={"annotations": {"a": "<&>\u2028\u2029é"}})
    assert r'"a":"\u003c\u0026\u003e\u2028\u2029é"'.encode() in revision_data(raw(content))


def test_claim_templates() -> None:
    claim = {
        "metadata": {"name": "data-vol"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}},
    }
    assert claim_templates_hash([]) == ""
    assert claim_templates_hash([raw(claim)]) == "16312009"
    noisy = {**claim, "metadata": {"name": "data-vol", "labels": {"a": "b"}}, "status": {"phase": "Pending"}}
    assert claim_templates_hash([raw(noisy)]) == "16312009"
    other = {"metadata": {"name": "a"}, "spec": {}}
    assert claim_templates_hash([raw(claim), raw(other)]) == claim_templates_hash([raw(other), raw(claim)])


@pytest.mark.parametrize(("image", "expected"), [("nginx:alpine", 0x4C6381B4), ("nginx:latest", 361796687)])
def test_plain_hash(image: str, expected: int) -> None:
    assert plain_hash(Container(name="nginx", image=image)) == expected


@pytest.mark.parametrize(
    ("env", "annotations", "expected"),
    [
        ([], {"conf": "v1"}, 86995377),
        ([env_from("APP_CONF", "metadata.annotations['conf']")], {"conf": "v1"}, 1126754683),
        ([env_from("APP_CONF", "metadata.annotations['conf']")], {"conf": "v2"}, 3741472673),
        ([env_from("SIDECARSET_VERSION", "metadata.annotations['conf']")], {"conf": "v2"}, 86995377),
    ],
)
def test_env_hash(env: list[Any], annotations: dict[str, str], expected: int) -> None:
    assert env_hash(msgspec.convert(container(env=env), Container), {}, annotations) == expected


def test_what_the_metadata_lacks_is_hashed_as_an_entry_without_value() -> None:
    reads = [env_from("APP_CONF", "metadata.labels['conf']")]
    held = msgspec.convert(container(env=reads), Container)
    assert env_hash(held, {}, {"conf": "v1"}) == object_hash(b'[{"name":"APP_CONF"}]')
    assert env_hash(held, {"conf": ""}, {}) == object_hash(b'[{"name":"APP_CONF"}]')
    assert env_hash(held, {"conf": "v1"}, {}) == object_hash(b'[{"name":"APP_CONF","value":"v1"}]')


def test_env_from_metadata() -> None:
    env = [
        env_from("B", "metadata.labels['app.io/x']"),
        env_from("A", "metadata.annotations['y']"),
        env_from("NAME", "metadata.name"),
        {**env_from("SET", "metadata.labels['z']"), "value": "fixed"},
        {"name": "LITERAL", "value": "v"},
    ]
    found = env_from_metadata(msgspec.convert(container(env=env), Container))
    assert found == {"B": ("labels", "app.io/x"), "A": ("annotations", "y")}
