"""Causes in containers, from statuses and events as kubelets write them."""

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.workload.causes import PodContext, cause_of, unstable_cause
from tests.testkit.documents import Json
from tests.testkit.tables import cases
from tests.unit.causes.build import around, ended, event, pod, running, stopped, waiting

PULL_133 = (
    'rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/shop:2": failed to resolve '
    'reference "docker.io/library/shop:2": docker.io/library/shop:2: not found'
)
PULL_136 = (
    'failed to pull and unpack image "docker.io/library/shop:2": failed to resolve image: docker.io/library/shop:2: '
    "not found"
)
DENIED = (
    'rpc error: code = Unknown desc = failed to pull and unpack image "r.example.com/shop:2": failed to resolve '
    'reference "r.example.com/shop:2": failed to authorize: failed to fetch oauth token: unexpected status from GET '
    "request to https://r.example.com/token: 401 Unauthorized"
)
NO_HOST = (
    'failed to pull and unpack image "r.example.com/shop:2": failed to resolve image: failed to do request: Head '
    '"https://r.example.com/v2/shop/manifests/2": dial tcp: lookup r.example.com: no such host'
)
RUNC = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
    "failed: unable "
    'to start container process: error during container init: exec: "serve": executable file not found in $PATH'
)
BACK_OFF = "back-off 1m20s restarting failed container=app pod=web-1_shop(3437a086-94d6-4b08-9abd-2dd0ed400e6f)"
CRASHED = waiting("CrashLoopBackOff", BACK_OFF, restarts=4, last=ended(1))
HTTP = {"readinessProbe": {"httpGet": {"path": "/health", "port": 8080}}}

IMAGES = [
    ("1.33", waiting("ErrImagePull", PULL_133), "cannot be pulled (ErrImagePull): docker.io/library/shop:2: not found"),
    ("1.36", waiting("ErrImagePull", PULL_136), "cannot be pulled (ErrImagePull): docker.io/library/shop:2: not found"),
    (
        "back-off keeps the error",
        waiting("ImagePullBackOff", f'Back-off pulling image "shop:2": ErrImagePull: {PULL_136}'),
        "cannot be pulled (ErrImagePull): docker.io/library/shop:2: not found",
    ),
    (
        "unauthorized",
        waiting("ErrImagePull", DENIED),
        (
            "failed to authorize: failed to fetch oauth token: unexpected status from GET request to "
            "https://r.example.com/token: 401 Unauthorized"
        ),
    ),
    ("no such registry", waiting("ErrImagePull", NO_HOST), "dial tcp: lookup r.example.com: no such host"),
    (
        "name",
        waiting(
            "InvalidImageName",
            'Failed to apply default image tag "shop:2": couldn\'t parse image name "shop:2": invalid reference format',
        ),
        '(InvalidImageName): couldn\'t parse image name "shop:2": invalid reference format',
    ),
    (
        "never",
        waiting("ErrImageNeverPull", 'Container image "shop:2" is not present with pull policy of Never'),
        "(ErrImageNeverPull): it is not on the node, and imagePullPolicy is Never",
    ),
]


@pytest.mark.parametrize(("status", "text"), cases(IMAGES))
def test_images(status: Json, text: str) -> None:
    cause = cause_of(pod(status, phase="Pending"))
    assert cause is not None
    assert cause.stuck
    assert cause.message.startswith("image shop:2 of container app cannot be pulled (")
    assert cause.message.endswith(text)


def test_an_old_kubelet_tells_the_error_in_an_event_only() -> None:
    failed = event("Failed", f'Failed to pull image "shop:2": {PULL_133}', container="app")
    backing_off = waiting("ImagePullBackOff", 'Back-off pulling image "shop:2"')
    cause = cause_of(pod(backing_off, phase="Pending"), around(failed))
    assert cause is not None
    assert cause.message.endswith("(ErrImagePull): docker.io/library/shop:2: not found")


ROWS: list[tuple[str, Pod, PodContext, str, str]] = [
    (
        "config map",
        pod(waiting("CreateContainerConfigError", 'configmap "settings" not found')),
        around(),
        "CreateContainerConfigError",
        'container app cannot be made: configmap "settings" not found',
    ),
    (
        "key",
        pod(waiting("CreateContainerConfigError", "couldn't find key a in Secret shop/db")),
        around(),
        "CreateContainerConfigError",
        "container app cannot be made: couldn't find key a in Secret shop/db",
    ),
    (
        "root",
        pod(
            waiting(
                "CreateContainerConfigError",
                "container has runAsNonRoot and image will run as root "
                '(pod: "web-1_shop(3437a086-94d6-4b08-9abd-2dd0ed400e6f)", container: app)',
            )
        ),
        around(),
        "CreateContainerConfigError",
        "container app cannot be made: container has runAsNonRoot and image will run as root",
    ),
    (
        "no such program",
        pod(waiting("RunContainerError", RUNC)),
        around(),
        "StartError",
        'container app cannot be started: exec: "serve": executable file not found in $PATH',
    ),
    (
        "no such program, later",
        pod(waiting("CrashLoopBackOff", BACK_OFF, restarts=2, last=ended(128, "StartError", RUNC))),
        around(),
        "StartError",
        'container app cannot be started: exec: "serve": executable file not found in $PATH',
    ),
    (
        "crash",
        pod(CRASHED),
        around(last_words={"app": "listening\ndb: connection refused\n\n"}),
        "CrashLoopBackOff",
        'container app crashes with exit code 1 (4 restarts, last words: "db: connection refused")',
    ),
    (
        "termination message",
        pod(waiting("CrashLoopBackOff", BACK_OFF, restarts=1, last=ended(3, message="no license\n"))),
        around(last_words={"app": "something else"}),
        "CrashLoopBackOff",
        'container app crashes with exit code 3 (1 restart, last words: "no license")',
    ),
    (
        "signal",
        pod(waiting("CrashLoopBackOff", BACK_OFF, restarts=2, last=ended(139))),
        around(),
        "CrashLoopBackOff",
        "container app crashes with exit code 139 (SIGSEGV) (2 restarts)",
    ),
    (
        "out of memory",
        pod(stopped(ended(137, "OOMKilled")), container={"resources": {"limits": {"memory": "64Mi"}}}),
        around(),
        "OOMKilled",
        "container app is OOMKilled: over its memory limit of 64Mi",
    ),
    (
        "without a limit",
        pod(stopped(ended(137, "OOMKilled"), restarts=1)),
        around(),
        "OOMKilled",
        "container app is OOMKilled: the node had no memory left for it (1 restart)",
    ),
    (
        "done",
        pod(waiting("CrashLoopBackOff", BACK_OFF, restarts=3, last=ended(0, "Completed"))),
        around(),
        "ContainerCompleted",
        "container app ends by itself with exit code 0, but should keep running (3 restarts)",
    ),
    (
        "runs again after a crash",
        pod(running(restarts=4, since=10, last=ended(1)), container=HTTP),
        around(event("Unhealthy", "Readiness probe failed: connection refused", container="app", at=5)),
        "CrashLoopBackOff",
        (
            "container app crashes with exit code 1 (4 restarts, runs again since 2026-03-01T11:59:50Z, readiness "
            "probe: connection "
            "refused)"
        ),
    ),
    (
        "restarted long ago",
        pod(running(restarts=4, since=3600, last=ended(1)), container=HTTP),
        around(event("Unhealthy", "Readiness probe failed: connection refused", container="app", at=5)),
        "ReadinessProbeFailed",
        "container app fails its readiness probe (GET /health on port 8080): connection refused",
    ),
    (
        "liveness",
        pod(waiting("CrashLoopBackOff", BACK_OFF, restarts=2, last=ended(137))),
        around(
            event("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500", container="app"),
            event("Killing", "Container app failed liveness probe, will be restarted", container="app", at=32),
        ),
        "LivenessProbeFailed",
        "container app is restarted, its liveness probe fails: HTTP probe failed with statuscode: 500 (2 restarts)",
    ),
    (
        "a crash after an old liveness failure",
        pod(waiting("CrashLoopBackOff", BACK_OFF, restarts=2, last=ended(1))),
        around(event("Killing", "Container app failed liveness probe, will be restarted", container="app", at=300)),
        "CrashLoopBackOff",
        "container app crashes with exit code 1 (2 restarts)",
    ),
    (
        "startup",
        pod(waiting("CrashLoopBackOff", BACK_OFF, restarts=1, last=ended(143))),
        around(
            event(
                "Unhealthy", "Startup probe failed: dial tcp 10.0.0.7:9: connect: connection refused", container="app"
            ),
            event("Killing", "Container app failed startup probe, will be restarted", container="app", series=True),
        ),
        "StartupProbeFailed",
        (
            "container app is restarted, its startup probe fails: dial tcp 10.0.0.7:9: connect: connection "
            "refused (1 restart)"
        ),
    ),
    (
        "startup, not over",
        pod(running(started=False), container={"startupProbe": {"exec": {"command": ["cat", "/ok"]}}}),
        around(),
        "StartupProbeFailed",
        "container app runs, and its startup probe (cat /ok) has not succeeded yet",
    ),
    (
        "post start",
        pod(waiting("CrashLoopBackOff", BACK_OFF, restarts=1, last=ended(137))),
        around(event("FailedPostStartHook", "PostStartHook failed", container="app")),
        "PostStartHookError",
        "container app is stopped each time, its postStart hook fails (1 restart)",
    ),
    (
        "readiness, nothing known",
        pod(running(), container=HTTP),
        around(),
        "ReadinessProbeFailed",
        "container app runs, and its readiness probe (GET /health on port 8080) has not succeeded yet",
    ),
    (
        "readiness of gRPC",
        pod(running(), container={"readinessProbe": {"grpc": {"port": 5000}}}),
        around(event("Unhealthy", 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")')),
        "ReadinessProbeFailed",
        'container app fails its readiness probe (gRPC port 5000): service unhealthy (responded with "NOT_SERVING")',
    ),
    (
        "just started",
        pod(running()),
        around(),
        "Starting",
        "container app runs, and its kubelet has not reported it ready yet",
    ),
    (
        "init container",
        pod(
            waiting("PodInitializing"),
            init=[
                stopped(ended(0, "Completed"), name="first"),
                waiting("CrashLoopBackOff", BACK_OFF, name="migrate", restarts=2, last=ended(5)),
                waiting("PodInitializing", name="third"),
            ],
        ),
        around(last_words={"migrate": "schema is locked"}),
        "CrashLoopBackOff",
        'init container migrate crashes with exit code 5 (2 restarts, last words: "schema is locked")',
    ),
    (
        "init container that does not end",
        pod(waiting("PodInitializing"), init=[running(name="wait")]),
        around(),
        "InitContainerRunning",
        "init container wait runs, and has to end before the others start",
    ),
    (
        "sidecar",
        pod(
            waiting("PodInitializing"),
            init=[waiting("ErrImagePull", PULL_136, name="log")],
            initContainers=[{"name": "log", "image": "log:1", "restartPolicy": "Always"}],
        ),
        around(),
        "ErrImagePull",
        "image log:1 of container log cannot be pulled (ErrImagePull): docker.io/library/shop:2: not found",
    ),
    (
        "the one that somebody has to act on",
        pod(running(), waiting("CreateContainerConfigError", 'secret "s" not found', name="other")),
        around(),
        "CreateContainerConfigError",
        'container other cannot be made: secret "s" not found',
    ),
]


@pytest.mark.parametrize(("found", "known", "code", "text"), cases(ROWS))
def test_containers(found: Pod, known: PodContext, code: str, text: str) -> None:
    cause = cause_of(found, known)
    assert cause is not None
    assert (cause.code, cause.text) == (code, text)


BARRIER = {
    "name": "KRUISE_CONTAINER_BARRIER",
    "valueFrom": {"configMapKeyRef": {"name": "web-1-barrier", "key": "p_0"}},
}


def test_a_container_that_waits_for_its_turn_lacks_no_config_map() -> None:
    missing = waiting("CreateContainerConfigError", "couldn't find key p_0 in ConfigMap shop/web-1-barrier")
    cause = cause_of(pod(missing, container={"env": [BARRIER]}))
    assert cause is not None
    assert (cause.code, cause.stuck) == ("LaunchPriority", False)


def updated_at(moment: str) -> Json:
    state = f'{{"revision":"web-2","updateTimestamp":"{moment}","lastContainerStatuses":{{"app":{{"imageID":"a"}}}}}}'
    return {"annotations": {"apps.kruise.io/inplace-update-state": state}}


@pytest.mark.parametrize(
    ("moment", "code"),
    [
        ("2026-03-01T11:59:25Z", "Starting"),
        ("2026-03-01T11:59:20Z", "Starting"),  # the same second
        ("2026-03-01T11:59:19Z", "CrashLoopBackOff"),
    ],
)
def test_what_an_in_place_update_ended_did_not_crash(moment: str, code: str) -> None:
    """The container that ended began 40 seconds ago."""
    found = pod(running(restarts=1, since=20, last=ended(143)), metadata=updated_at(moment))
    cause = cause_of(found, around())
    assert cause is not None
    assert cause.code == code


def test_what_serves_has_no_cause_but_may_be_unstable() -> None:
    found = pod(running(ready=True, restarts=2, since=20, last=ended(137)), conditions=[])
    killed = event("Killing", "Container app failed liveness probe, will be restarted", container="app")
    cause = unstable_cause(found, around(killed))
    assert cause is not None
    assert (cause.code, cause.text) == (
        "LivenessProbeFailed",
        "container app is restarted, its liveness probe fails (2 restarts)",
    )
    assert unstable_cause(pod(running(ready=True)), around()) is None


def test_a_liveness_probe_that_fails_is_told_before_the_restart() -> None:
    failing = event("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500", container="app")
    cause = unstable_cause(pod(running(ready=True)), around(failing))
    assert cause is not None
    assert cause.text.endswith("will be restarted: HTTP probe failed with statuscode: 500")
