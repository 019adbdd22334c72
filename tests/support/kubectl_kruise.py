"""A stand-in for kubectl-kruise: its verbs as the requests that the tool sends, and what it prints.

Written after the tool's documentation (openkruise/kruise-tools, docs/). It reads an object in one version, computes the
change, and sends a JSON merge patch to the same version: the apiserver accepts no strategic merge patch for custom
resources. `rollout status` follows the object with a watch and prints a line for each state of its status.
"""

import copy
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime

from flotilla_common.api.documents import merge_patch
from tests.support.rest import MERGE, Conflict, Rest
from tests.testkit.documents import Json

CAUSE = "kubernetes.io/change-cause"
RESTARTED = "kubectl.kubernetes.io/restartedAt"
_BATCH = "rollouts.kruise.io/rollout-batch-id"
_PLURALS = {"CloneSet": "clonesets", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}


class KubectlKruise:
    """The tool in one namespace; it uses one version of our API."""

    def __init__(self, rest: Rest, namespace: str, version: str) -> None:
        self._rest = rest
        self._namespace = namespace
        self._version = version

    # rollout

    def status(self, kind: str, name: str) -> tuple[str, bool]:
        """Run `rollout status --watch=false`: return the line, and whether the rollout is done."""
        return rollout_line(self.read(kind, name))

    def follow(self, kind: str, name: str, since: Json | None = None) -> list[str]:
        """Run `rollout status`: return all lines up to the last one, when the rollout has ended.

        `since`: an earlier state of the object, so that no later change is missed.
        """
        lines: list[str] = []
        where = f"{self._path(kind)}?watch=true&fieldSelector=metadata.name%3D{name}"
        if since is not None:
            where += f"&resourceVersion={since['metadata']['resourceVersion']}"
        for document in self._rest.watch(where):
            line, done = rollout_line(document)
            if line not in lines[-1:]:
                lines.append(line)
            if done:
                return lines
        raise AssertionError(f"the watch ended: {lines}")

    def history(self, kind: str, name: str) -> list[tuple[int, str]]:
        """Run `rollout history`: return REVISION and CHANGE-CAUSE."""
        return [
            (one["revision"], one["metadata"].get("annotations", {}).get(CAUSE, "<none>"))
            for one in self._revisions(kind, name)
        ]

    def template_of(self, kind: str, name: str, revision: int) -> Json:
        """Run `rollout history --revision=N`: return the printed pod template."""
        found = next(one for one in self._revisions(kind, name) if one["revision"] == revision)
        return found["data"]["spec"]["template"]

    def undo(self, kind: str, name: str, to_revision: int = 0) -> Json:
        """Run `rollout undo`: send the data of a revision as a merge patch; without a number, of the last but one."""
        revisions = self._revisions(kind, name)
        wanted = revisions[-2] if not to_revision else next(one for one in revisions if one["revision"] == to_revision)
        return self._patch(kind, name, wanted["data"])

    def pause(self, kind: str, name: str) -> Json:
        """Run `rollout pause`."""
        return self._set_paused(kind, name, paused=True)

    def resume(self, kind: str, name: str) -> Json:
        """Run `rollout resume`."""
        return self._set_paused(kind, name, paused=False)

    def approve(self, name: str) -> Json:
        """Run `rollout approve rollout/NAME`: mark the waiting step as ready."""
        body = {"status": {"canaryStatus": {"currentStepState": "StepReady"}}}
        return self._rest.send("PATCH", f"{self._rollouts()}/{name}/status", body, MERGE)

    def describe_rollout(self, name: str) -> list[str]:
        """`describe rollout NAME`: the step, and a line for each pod of the workload with its revision and batch."""
        rollout = self._rest.send("GET", f"{self._rollouts()}/{name}")
        target, step = rollout["spec"]["workloadRef"], rollout["status"]["canaryStatus"]
        workload = self.read(target["kind"], target["name"])
        selector = "%2C".join(f"{key}%3D{value}" for key, value in workload["spec"]["selector"]["matchLabels"].items())
        pods = self._rest.send("GET", f"/api/v1/namespaces/{self._namespace}/pods?labelSelector={selector}")["items"]
        lines = [f"Step: {step['currentStepIndex']} {step['currentStepState']}"]
        for pod in sorted(pods, key=lambda one: one["metadata"]["name"]):
            labels = pod["metadata"]["labels"]
            lines.append(f"{labels['pod-template-hash']} {labels.get(_BATCH, '-')} {pod['status']['phase']}")
        return lines

    def restart(self, kind: str, name: str) -> Json:
        """Run `rollout restart`: set an annotation of the template, or a variable where pods are updated in place."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if in_place(self.read(kind, name)):
            return self.set_env(kind, name, RESTARTED_AT=now)

        def stamp(template: Json) -> None:
            metadata: Json = template.setdefault("metadata", {})
            metadata.setdefault("annotations", {})[RESTARTED] = now

        return self._change(kind, name, stamp)

    # set

    def set_image(self, kind: str, name: str, cause: str = "", **images: str) -> Json:
        """`set image KIND/NAME CONTAINER=IMAGE …`; with a cause, as `--record` wrote it."""

        def change(template: Json) -> None:
            for container in template["spec"]["containers"]:
                container["image"] = images.get(container["name"], container["image"])

        return self._change(kind, name, change, cause)

    def set_env(self, kind: str, name: str, cause: str = "", **variables: str) -> Json:
        """`set env KIND/NAME KEY=VALUE …`."""

        def change(template: Json) -> None:
            for container in template["spec"]["containers"]:
                kept = [one for one in container.get("env", []) if one["name"] not in variables]
                container["env"] = [*kept, *({"name": key, "value": value} for key, value in variables.items())]

        return self._change(kind, name, change, cause)

    def set_resources(self, kind: str, name: str, container: str, **limits: str) -> Json:
        """`set resources KIND NAME -c CONTAINER --limits=…`."""

        def change(template: Json) -> None:
            for found in template["spec"]["containers"]:
                if found["name"] == container:
                    found.setdefault("resources", {})["limits"] = limits

        return self._change(kind, name, change)

    def set_service_account(self, kind: str, name: str, account: str) -> Json:
        """`set serviceaccount KIND NAME ACCOUNT`."""
        return self._change(kind, name, lambda template: template["spec"].update(serviceAccountName=account))

    def set_selector(self, kind: str, name: str, **labels: str) -> Json:
        """`set selector KIND NAME KEY=VALUE`: labels in place of the selector's."""
        return self._patch(kind, name, {"spec": {"selector": {"matchLabels": labels}}})

    # scale and scaledown

    def scale(self, kind: str, name: str, replicas: int) -> Json:
        """`scale --replicas=N`: a merge patch of /scale."""
        return self._rest.send("PATCH", f"{self._path(kind, name)}/scale", {"spec": {"replicas": replicas}}, MERGE)

    def scaledown(self, name: str, *pods: str) -> Json:
        """Run `scaledown CloneSet NAME --pods …`: set names and replicas in one update, again after a conflict."""
        while True:
            clone = self.read("CloneSet", name)
            clone["spec"]["replicas"] -= len(pods)
            strategy: Json = clone["spec"].setdefault("scaleStrategy", {})
            strategy["podsToDelete"] = list(pods)
            with suppress(Conflict):
                return self._rest.send("PUT", self._path("CloneSet", name), clone)

    # create, expose and migrate

    def create_recreate_request(self, name: str, pod: str, *containers: str) -> Json:
        """`create ContainerRecreateRequest NAME --pod=… --containers=…`."""
        spec: Json = {
            "podName": pod,
            "containers": [{"name": one} for one in containers],
            "strategy": {"failurePolicy": "Fail", "orderedRecreate": False, "unreadyGracePeriodSeconds": 3},
            "activeDeadlineSeconds": 300,
            "ttlSecondsAfterFinished": 1800,
        }
        return self._create("containerrecreaterequests", "ContainerRecreateRequest", name, spec)

    def create_broadcast_job(self, name: str, source: str) -> Json:
        """`create broadcastJob NAME --from=acj/SOURCE`."""
        cron_job = self._read("advancedcronjobs", source)
        return self._create(
            "broadcastjobs",
            "BroadcastJob",
            name,
            cron_job["spec"]["template"]["broadcastJobTemplate"]["spec"],
            by_hand(cron_job),
        )

    def create_job(self, name: str, source: str) -> Json:
        """`create job NAME --from=acj/SOURCE`."""
        cron_job = self._read("advancedcronjobs", source)
        body: Json = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, **by_hand(cron_job)},
            "spec": cron_job["spec"]["template"]["jobTemplate"]["spec"],
        }
        return self._rest.send("POST", f"/apis/batch/v1/namespaces/{self._namespace}/jobs", body)

    def expose(self, kind: str, name: str, port: int) -> Json:
        """Run `expose KIND NAME --port=…`: create a Service with the labels of the selector."""
        labels = self.read(kind, name)["spec"]["selector"]["matchLabels"]
        body: Json = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"selector": labels, "ports": [{"protocol": "TCP", "port": port, "targetPort": port}]},
        }
        return self._rest.send("POST", f"/api/v1/namespaces/{self._namespace}/services", body)

    def migrate_create(self, source: str, name: str) -> Json:
        """Run `migrate CloneSet --from Deployment --create`: create a CloneSet without pods of the same template."""
        spec = self._rest.send("GET", f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{source}")["spec"]
        kept = {field: spec[field] for field in ("selector", "template")}
        return self._create("clonesets", "CloneSet", name, {"replicas": 0, **kept})

    def migrate(self, source: str, name: str, ready: Callable[[int], None], surge: int = 1) -> None:
        """Run `migrate CloneSet --from Deployment --max-surge=…`: move `surge` replicas at a time.

        `ready` waits until the CloneSet has this many ready pods.
        """
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{source}/scale"
        left, moved = self._rest.send("GET", path)["spec"]["replicas"], 0
        while left:
            step = min(surge, left)
            moved, left = moved + step, left - step
            self.scale("CloneSet", name, moved)
            ready(moved)
            self._rest.send("PATCH", path, {"spec": {"replicas": left}}, MERGE)

    # requests

    def read(self, kind: str, name: str) -> Json:
        """Return the object in the tool's version."""
        return self._rest.send("GET", self._path(kind, name))

    def _change(self, kind: str, name: str, change: Callable[[Json], None], cause: str = "") -> Json:
        before = self.read(kind, name)
        after = copy.deepcopy(before)
        change(after["spec"]["template"])
        if cause:
            after["metadata"].setdefault("annotations", {})[CAUSE] = cause
        return self._patch(kind, name, merge_patch(before, after))

    def _set_paused(self, kind: str, name: str, *, paused: bool) -> Json:
        field = {"paused": paused}
        old_clone = kind == "CloneSet" and self._version == "v1alpha1"
        strategy = field if old_clone else {"rollingUpdate": field}
        return self._patch(kind, name, {"spec": {"updateStrategy": strategy}})

    def _patch(self, kind: str, name: str, body: Json) -> Json:
        return self._rest.send("PATCH", self._path(kind, name), body, MERGE)

    def _create(self, plural: str, kind: str, name: str, spec: Json, metadata: Json | None = None) -> Json:
        body = {
            "apiVersion": f"apps.kruise.io/{self._version}",
            "kind": kind,
            "metadata": {"name": name, **(metadata or {})},
            "spec": spec,
        }
        return self._rest.send("POST", self._kinds(plural), body)

    def _read(self, plural: str, name: str) -> Json:
        return self._rest.send("GET", f"{self._kinds(plural)}/{name}")

    def _revisions(self, kind: str, name: str) -> list[Json]:
        """Return the set's revisions, by its selector and its ownership, in their order."""
        found = self.read(kind, name)
        selector = "%2C".join(f"{key}%3D{value}" for key, value in found["spec"]["selector"]["matchLabels"].items())
        path = f"/apis/apps/v1/namespaces/{self._namespace}/controllerrevisions?labelSelector={selector}"
        items: Iterable[Json] = self._rest.send("GET", path)["items"]
        uid = found["metadata"]["uid"]
        own = [one for one in items if any(o["uid"] == uid for o in one["metadata"].get("ownerReferences", ()))]
        return sorted(own, key=lambda one: one["revision"])

    def _path(self, kind: str, name: str = "") -> str:
        return self._kinds(_PLURALS[kind]) + (f"/{name}" if name else "")

    def _rollouts(self) -> str:
        return f"/apis/rollouts.kruise.io/v1beta1/namespaces/{self._namespace}/rollouts"

    def _kinds(self, plural: str) -> str:
        return f"/apis/apps.kruise.io/{self._version}/namespaces/{self._namespace}/{plural}"


def rollout_line(found: Json) -> tuple[str, bool]:
    """Return the line of `rollout status` for an object, and whether its rollout is done. Absent counts are zero."""
    status: Json = found.get("status", {})
    if status.get("observedGeneration", 0) < found["metadata"]["generation"]:
        return f"Waiting for {found['kind']} spec update to be observed...", False
    strategy = found["spec"].get("updateStrategy", {})
    rolling: Json = strategy.get("rollingUpdate", strategy)
    partition = rolling.get("partition", 0)
    return (_daemons_line if found["kind"] == "DaemonSet" else _replicas_line)(found, status, partition)


def _daemons_line(found: Json, status: Json, partition: int) -> tuple[str, bool]:
    name, desired = found["metadata"]["name"], status["desiredNumberScheduled"]
    updated, wanted = status.get("updatedNumberScheduled", 0), desired - partition
    if updated < wanted:
        said = f"{updated} out of {wanted} new pods have been updated..."
        return f'Waiting for daemon set "{name}" rollout to finish: {said}', False
    if (available := status.get("numberAvailable", 0)) < desired:
        said = f"{available} of {desired} updated pods are available..."
        return f'Waiting for daemon set "{name}" rollout to finish: {said}', False
    return f'daemon set "{name}" successfully rolled out', True


def _replicas_line(found: Json, status: Json, partition: int) -> tuple[str, bool]:
    replicas, updated = found["spec"]["replicas"], status.get("updatedReplicas", 0)
    if (ready := status.get("readyReplicas", 0)) < replicas:
        return f"Waiting for {replicas - ready} pods to be ready...", False
    if updated < (wanted := replicas - partition):
        said = f"{updated} out of {wanted} new pods have been updated..."
        return f"Waiting for partitioned roll out to finish: {said}", False
    if not partition and status["updateRevision"] != status["currentRevision"]:
        said = f"{updated} pods at revision {status['updateRevision']}..."
        return f"waiting for rolling update to complete {said}", False
    return f"partitioned roll out complete: {updated} new pods have been updated...", True


def in_place(found: Json) -> bool:
    """Report whether pods of the set are updated in place."""
    strategy: Json = found["spec"].get("updateStrategy", {})
    rolling: Json = strategy.get("rollingUpdate") or {}
    named = {strategy.get("type"), rolling.get("podUpdatePolicy"), rolling.get("rollingUpdateType")}
    return bool(named & {"InPlaceIfPossible", "InPlaceOnly"})


def by_hand(cron_job: Json) -> Json:
    """Return the metadata of a run started by hand: the schedule is an owner, but not its controller."""
    owner = {
        "apiVersion": cron_job["apiVersion"],
        "kind": cron_job["kind"],
        "name": cron_job["metadata"]["name"],
        "uid": cron_job["metadata"]["uid"],
    }
    return {"annotations": {"cronjob.kubernetes.io/instantiate": "manual"}, "ownerReferences": [owner]}
