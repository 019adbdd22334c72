"""Random pods of all shapes, for code that has to accept any pod."""

import random

from tests.testkit.documents import Json

NAMES = ("main", "app", "log", "mesh", "init", "x1")
VALUES = ("", "1", "true", "a/b", "{}", '{"a":1}', "$(E1)", "ünïcödé", "x" * 200)
KEYS = ("app", "team", "tier", "example.com/role", "kruise.io/sidecarset-injected-list", "oom-score")


def random_pod(dice: random.Random) -> Json:
    """Return a pod that an apiserver accepts, as a client sends it: few members or many, absent ones, empty ones."""
    volumes = [f"v{index}" for index in range(dice.randrange(4))]
    count = dice.choice((1, 1, 2, 3))
    names = dice.sample(NAMES, count + dice.randrange(2))
    spec: Json = {"containers": [_container(dice, name, volumes) for name in names[:count]]}
    if names[count:]:
        spec["initContainers"] = [_container(dice, name, volumes) for name in names[count:]]
    if volumes:
        spec["volumes"] = [
            {"name": name} | dice.choice(({"emptyDir": {}}, {"secret": {"secretName": "s"}})) for name in volumes
        ]
    for key, value in (
        ("restartPolicy", "Never"),
        ("imagePullSecrets", [{"name": "a"}, {"name": "b"}]),
        ("readinessGates", [{"conditionType": "example.com/ready"}]),
        ("nodeSelector", {"disk": "ssd"}),
        ("hostAliases", [{"ip": "10.0.0.1", "hostnames": ["a"]}]),
        ("terminationGracePeriodSeconds", 0),
    ):
        if dice.random() < 0.2:
            spec[key] = value
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(dice), "spec": spec}


def _metadata(dice: random.Random) -> Json:
    metadata: Json = dice.choice(({"generateName": "fuzz-"}, {"name": f"fuzz-{dice.getrandbits(40):x}"}))
    if dice.random() < 0.8:
        labels = {key: dice.choice(("x", "y", "")) for key in dice.sample(KEYS[:4], dice.randrange(4))}
        metadata["labels"] = labels
    if dice.random() < 0.5:
        keys = dice.sample(KEYS, dice.randrange(4))
        metadata["annotations"] = {key: dice.choice(VALUES) for key in keys}
    if dice.random() < 0.2:
        owner = {"apiVersion": "example.com/v1", "kind": "Game", "name": "g", "uid": "u", "controller": True}
        metadata["ownerReferences"] = [owner]
    return metadata


def _container(dice: random.Random, name: str, volumes: list[str]) -> Json:
    container: Json = {"name": name, "image": dice.choice(("nginx", "nginx:1.25", "busybox@sha256:" + "0" * 64))}
    if dice.random() < 0.6:
        env: list[Json] = [{"name": f"E{index}", "value": dice.choice(VALUES)} for index in range(dice.randrange(4))]
        if dice.random() < 0.3:
            env.append({"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
        if dice.random() < 0.3:
            env.append({"name": "KRUISE_CONTAINER_PRIORITY", "value": dice.choice(("0", "1", "-3"))})
        container["env"] = env
    if volumes and dice.random() < 0.7:
        used = dice.sample(volumes, dice.randrange(len(volumes) + 1))
        container["volumeMounts"] = [{"name": one, "mountPath": f"/{one}"} for one in used]
    if dice.random() < 0.3:
        container["resources"] = {"limits": {"cpu": dice.choice(("1", "500m", "0.1")), "memory": "64Mi"}}
    if dice.random() < 0.2:
        container["ports"] = [{"containerPort": 80}]
    return container
