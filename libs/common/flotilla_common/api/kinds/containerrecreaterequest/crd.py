"""The ContainerRecreateRequest CRD (containerrecreaterequest.md §1, §2).

v1beta1 has a stricter schema and a larger status.
"""

from flotilla_common.api.crds.schema import (
    AGE,
    Column,
    Schema,
    Version,
    array,
    boolean,
    int_or_string,
    integer,
    standard_conditions,
    string,
    strings,
    struct,
    time,
)
from flotilla_common.api.keys import RECREATE_NODE_NAME

_COLUMNS = (
    Column("PHASE", "string", ".status.phase"),
    Column("POD", "string", ".spec.podName"),
    Column("NODE", "string", f".metadata.labels.{RECREATE_NODE_NAME.replace('.', chr(92) + '.')}"),
    AGE,
)
_PHASES = ("Pending", "Recreating", "Succeeded", "Failed")
_BY_ADMISSION = "Set by the system; users must not set it."


def version(name: str) -> Version:
    """Return one version of the CRD."""
    strict = name != "v1alpha1"
    return Version(name, _spec(strict=strict), _status(strict=strict), _COLUMNS)


def _spec(*, strict: bool) -> Schema:
    least = 0 if strict else None
    return struct(
        "The desired state; never changes.",
        ("podName", "containers"),
        podName=string("The pod, in the same namespace."),
        containers=array("The containers to restart, in this order.", _container()),
        strategy=_strategy(strict=strict),
        activeDeadlineSeconds=integer(
            "Seconds after creation after which the request completes in any state; at least 3.", 64, least
        ),
        ttlSecondsAfterFinished=integer(
            "Seconds after completion when the request is deleted. Unset: it is kept.", minimum=least
        ),
    )


def _container() -> Schema:
    return struct(
        "One container of the pod.",
        ("name",),
        name=string("Its name; no init container and no ephemeral one."),
        preStop=_pre_stop(),
        ports=array(f"The container's ports, if its hook may name one. {_BY_ADMISSION}", _port()),
        statusContext=struct(
            f"The container that was running when the request was made. {_BY_ADMISSION}",
            ("containerID", "restartCount"),
            containerID=string("Its ID, as <runtime>://<id>."),
            restartCount=integer("Its restart count at that time."),
        ),
    )


def _pre_stop() -> Schema:
    header = struct("One header.", ("name", "value"), name=string("Its name."), value=string("Its value."))
    command = strings("The program and its arguments; no shell.")
    return struct(
        f"The hook that runs before the container is stopped. {_BY_ADMISSION}",
        exec=struct("Run a program in the container.", command=command),
        httpGet=struct(
            "Send a request.",
            ("port",),
            path=string("The path."),
            port=int_or_string("The port, by number or name."),
            host=string("The host. Default: the pod's IP."),
            scheme=string("HTTP or HTTPS. Default: HTTP."),
            httpHeaders=array("Headers to send.", header),
        ),
        tcpSocket=struct(
            "Not supported; counts as a hook that failed.",
            ("port",),
            port=int_or_string("The port, by number or name."),
            host=string("The host."),
        ),
        sleep=struct("Wait.", ("seconds",), seconds=integer("The seconds to wait.", bits=64)),
    )


def _port() -> Schema:
    return struct(
        "One port.",
        ("containerPort",),
        name=string("Its name."),
        containerPort=integer("Its number in the pod."),
        hostPort=integer("Its number on the node."),
        protocol=string("TCP, UDP or SCTP."),
        hostIP=string("The address on the node."),
    )


def _strategy(*, strict: bool) -> Schema:
    least = 0 if strict else None
    return struct(
        "The restart strategy.",
        failurePolicy=string(
            "Fail: finish as soon as one container failed. Ignore: go on with the others. Default: Fail.",
            enum=("Fail", "Ignore") if strict else (),
        ),
        orderedRecreate=boolean("Restart a container only after the one before it has succeeded. Default: false."),
        forceRecreate=boolean(
            "Restart also containers that were restarted since the request was created. Default: false."
        ),
        terminationGracePeriodSeconds=integer(
            "Seconds for the preStop hook and the stop together. Default: the pod's.", 64, least
        ),
        unreadyGracePeriodSeconds=integer(
            "Seconds that the pod is not ready before the first stop. Unset: it stays ready until then.", 64, least
        ),
        minStartedSeconds=integer(
            "Seconds that a new container must have been running to count as succeeded. Default: 0.", minimum=least
        ),
    )


def _status(*, strict: bool) -> Schema:
    state = struct(
        "The progress of one container.",
        ("name", "phase"),
        name=string("The container."),
        phase=string("Pending, Recreating, Succeeded or Failed.", enum=_PHASES if strict else ()),
        message=string("The error, if there was one."),
        isKilled=boolean("Whether the old container is gone."),
    )
    shared = {
        "phase": string(
            "Empty until the agent has seen the request; then Pending, Recreating, Completed. Completed does not "
            "mean success: see the states of the containers.",
            enum=("", *_PHASES, "Completed") if strict else (),
        ),
        "completionTime": time("The completion time."),
        "message": string("The reason if it did not complete by itself."),
        "containerRecreateStates": array("One entry per container, in the order of the spec.", state),
    }
    return struct("The progress.", ("phase",), **shared, **(_beta_status() if strict else {}))


def _beta_status() -> dict[str, Schema]:
    snapshot = struct(
        "One container.",
        ("name", "ready", "restartCount"),
        name=string("Its name."),
        ready=boolean("Whether it is ready."),
        restartCount=integer("Its restart count."),
        containerID=string("Its ID, as <runtime>://<id>."),
    )
    return {
        "containerStatusSnapshot": array("The new containers in the pod's status.", snapshot),
        "conditions": standard_conditions("PreRecreateGrace: the pod has been made not ready for the grace period."),
    }
