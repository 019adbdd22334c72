"""Resources that follow from those of the pod's containers (sidecarset.md §6.11, rows 22 to 25 of §11.1)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.sidecarset.resources import computed_resources
from tests.testkit.documents import Json


def container(name: str, limits: Json | None = None, requests: Json | None = None, **fields: Any) -> Json:
    given = {"limits": limits, "requests": requests}
    return {"name": name, "resources": {key: value for key, value in given.items() if value is not None}} | fields


def policy(mode: str = "sum", regex: str | None = None, **expressions: Json) -> Json:
    made: Json = {"targetContainersMode": mode, "resourcesExpr": expressions}
    return made if regex is None else made | {"targetContainersNameRegex": regex}


def pod(*containers: Json, init: tuple[Json, ...] = ()) -> Json:
    return {"spec": {"containers": list(containers), "initContainers": list(init)}}


CPU = {"cpu": "max(cpu*30%, 50m)"}
TWO = (container("app1", {"cpu": "400m"}), container("app2", {"cpu": "600m"}))


@pytest.mark.parametrize(
    ("rule", "given", "expected"),
    [
        pytest.param(policy(regex="^app", limits=CPU), pod(*TWO), {"limits": {"cpu": "300m"}}, id="row 22"),
        pytest.param(policy(regex="^app", limits=CPU), pod(TWO[0], container("app2")), {}, id="row 23"),
        pytest.param(policy(requests={"cpu": "cpu*50%"}), pod(container("a")), {"requests": {"cpu": "0"}}, id="row 24"),
        pytest.param(policy("max", limits={"cpu": "cpu"}), pod(*TWO), {"limits": {"cpu": "600m"}}, id="the largest"),
        pytest.param(
            policy(limits={"cpu": "100m"}), pod(container("a")), {}, id="a constant needs a limit of everybody, too"
        ),
        pytest.param(
            policy(requests={"cpu": "cpu", "memory": "memory + 10Mi"}),
            pod(container("a", requests={"cpu": 1, "memory": "1Gi"}), container("b")),
            {"requests": {"cpu": "1", "memory": "1034Mi"}},
            id="missing requests are zero",
        ),
        pytest.param(
            policy("max", requests={"memory": "memory"}),
            pod(container("a", requests={"memory": "1Gi"}), container("b", requests={"memory": "2G"})),
            {"requests": {"memory": "2G"}},
            id="the largest is written as it is",
        ),
        pytest.param(
            policy(limits={"cpu": "cpu", "memory": "memory"}),
            pod(container("a", {"cpu": "1", "memory": "1Mi"}), container("b", {"memory": "1Mi"})),
            {"limits": {"memory": "2Mi"}},
            id="each resource by itself",
        ),
        pytest.param(
            policy(limits={"cpu": "cpu"}, requests={"cpu": "cpu*2"}),
            pod(container("a", {"cpu": "1"}, {"cpu": "250m"})),
            {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}},
            id="limits of limits, requests of requests",
        ),
        pytest.param(
            policy(limits={"cpu": "", "memory": "memory"}),
            pod(container("a", {"cpu": "1", "memory": "1"})),
            {"limits": {"memory": "1"}},
            id="no expression",
        ),
        pytest.param(
            policy(limits={"cpu": "cpu"}),
            pod(*TWO, init=(container("net", {"cpu": "1"}, restartPolicy="Always"), container("setup", {"cpu": "9"}))),
            {"limits": {"cpu": "2"}},
            id="native sidecars count, init containers do not",
        ),
        pytest.param(
            policy(limits={"cpu": "cpu"}),
            pod(*TWO, container("log", {"cpu": "9"})),
            {"limits": {"cpu": "1"}},
            id="what is injected does not count",
        ),
    ],
)
def test_resources(rule: Json, given: Json, expected: Json) -> None:
    assert computed_resources(rule, given, {"log"}) == expected


@pytest.mark.parametrize(
    ("rule", "given", "problem"),
    [
        pytest.param(
            policy(regex="^setup$", limits=CPU),
            pod(*TWO, init=(container("setup", {"cpu": "1"}),)),
            "no containers match the regex '\\^setup\\$'",
            id="row 25",
        ),
        pytest.param(
            policy(regex="^log$", limits=CPU), pod(container("log", {"cpu": "1"})), "no containers match", id="sidecars"
        ),
        pytest.param(policy(regex="(?=a)", limits=CPU), pod(*TWO), "perl operator", id="no regex"),
        pytest.param(policy(limits={"cpu": "cpu * 2m"}), pod(*TWO), "multiplied", id="an expression that fails"),
        pytest.param(policy(requests={"cpu": "cpu - 1"}), pod(*TWO), "negative", id="a negative result"),
        pytest.param(
            policy(limits={"cpu": "cpu"}), pod(container("a", {"cpu": "much"})), "is not a quantity", id="no quantity"
        ),
    ],
)
def test_pods_that_are_refused(rule: Json, given: Json, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        computed_resources(rule, given, {"log"})
