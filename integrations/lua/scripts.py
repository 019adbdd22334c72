"""The parts of each kind's scripts, except its health rule, which is in `kinds/`."""

from typing import NamedTuple

UPDATE_STRATEGY = 'local strategy = place(obj, "spec", "updateStrategy")\n'
ROLLING_UPDATE = 'local strategy = place(obj, "spec", "updateStrategy", "rollingUpdate")\n'
BY_VERSION = UPDATE_STRATEGY + (
    'if obj.apiVersion ~= "apps.kruise.io/v1alpha1" then strategy = place(strategy, "rollingUpdate") end\n'
)
SPEC = 'local strategy = place(obj, "spec")\n'
PARTITIONS = 'local strategy = place(obj, "spec", "updateStrategy", "manualUpdate", "partitions")\n'
TEMPLATE = 'local template = place(obj, "spec", "template")\n'
CHILD_TEMPLATE = """\
local template
for _, child in pairs(place(obj, "spec", "template")) do
  if type(child) == "table" then template = place(child, "spec", "template") end
end
"""
"""Lua that sets `strategy` or `template` to the table that an action changes."""


class Actions(NamedTuple):
    """The actions of a kind: each with the Lua condition that disables it."""

    strategy: str = ""
    template: str = ""  # of the pods, if it is not at spec.template
    disabled: dict[str, str] = {}
    prelude: str = ""  # before these conditions


class Karmada(NamedTuple):
    """The status fields that Karmada aggregates over its members, and the place of the pod template."""

    counts: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()  # the same in all members
    lists: tuple[str, ...] = ()  # concatenated
    first: tuple[str, ...] = ()  # times; the earliest counts
    last: tuple[str, ...] = ()  # times; the latest counts
    phases: tuple[str, ...] = ()  # the first of these that a member has
    generations: bool = True  # has observedGeneration
    scaled: bool = False  # has spec.replicas, which are divided among members
    template: str = ""  # the pod template, as Lua
    secrets: bool = False  # has spec.pullSecrets
    retained: str = ""  # keeps what belongs to the member, as Lua


class Scripts(NamedTuple):
    """All scripts of a kind except its health rule."""

    actions: Actions = Actions()
    karmada: Karmada | None = None


def _rollout(strategy: str, *, restart: bool = True) -> Actions:
    prelude = """\
local kind = place(obj, "spec", "updateStrategy").type
local rolls = kind ~= "OnDelete" and kind ~= "NotUpdate"
local partition = strategy.partition or 0
local held = partition ~= 0 and partition ~= "0%"
"""
    disabled = {
        "pause": "not rolls or strategy.paused == true",
        "resume": "not rolls or strategy.paused ~= true",
        "promote": "not rolls or not held",
    }
    return Actions(strategy, "", disabled | ({"restart": "false"} if restart else {}), prelude)


def _job(prelude: str = "local ended = false\n") -> Actions:
    disabled = {"pause": "ended or strategy.paused == true", "resume": "ended or strategy.paused ~= true"}
    return Actions(SPEC, "", disabled, prelude)


_STATUS = 'local status = place(obj, "status")\n'
_PODS = 'at(desiredObj, "spec", "template")'
_REPLICAS = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas")
_PULLS = ("desired", "active", "succeeded", "failed")

SCRIPTS: dict[str, Scripts] = {
    "CloneSet": Scripts(
        _rollout(BY_VERSION),
        Karmada(
            counts=(*_REPLICAS, "updatedAvailableReplicas", "expectedUpdatedReplicas"),
            texts=("updateRevision", "currentRevision", "labelSelector"),
            scaled=True,
            template=_PODS,
            # The member's controller removes names once their pods are gone; the names belong to the member, too.
            retained="""\
  local names = at(observedObj, "spec", "scaleStrategy", "podsToDelete")
  if names ~= nil and at(spec, "scaleStrategy", "podsToDelete") == nil then
    place(spec, "scaleStrategy").podsToDelete = names
  end
""",
        ),
    ),
    "StatefulSet": Scripts(
        _rollout(ROLLING_UPDATE),
        Karmada(
            counts=(*_REPLICAS, "updatedAvailableReplicas", "currentReplicas"),
            texts=("updateRevision", "currentRevision", "labelSelector"),
            scaled=True,
            template=_PODS,
        ),
    ),
    "DaemonSet": Scripts(
        _rollout(ROLLING_UPDATE),
        Karmada(
            counts=(
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
            ),
            texts=("updateRevision", "daemonSetHash"),
            template=_PODS,
        ),
    ),
    "UnitedDeployment": Scripts(
        Actions(
            PARTITIONS,
            CHILD_TEMPLATE,
            {"promote": "not held", "restart": "template == nil"},
            """\
local held = false
for _, partition in pairs(strategy) do held = held or partition ~= 0 end
""",
        ),
        Karmada(
            counts=("replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas", "reservedPods"),
            texts=("updatedRevision", "currentRevision", "labelSelector"),
            scaled=True,
            template='at(only(at(desiredObj, "spec", "template")), "spec", "template")',
        ),
    ),
    "SidecarSet": Scripts(
        _rollout(UPDATE_STRATEGY, restart=False),
        Karmada(
            counts=("matchedPods", "updatedPods", "readyPods", "updatedReadyPods"),
            texts=("latestRevision",),
        ),
    ),
    "BroadcastJob": Scripts(
        _job(_STATUS + 'local ended = status.phase == "completed" or status.phase == "failed"\n'),
        Karmada(
            counts=_PULLS,
            first=("startTime",),
            last=("completionTime",),
            phases=("failed", "running", "paused", "completed"),
            generations=False,
            template=_PODS,
        ),
    ),
    "AdvancedCronJob": Scripts(
        _job(),
        Karmada(
            texts=("type",),
            lists=("active",),
            last=("lastScheduleTime",),
            generations=False,
            template="""\
at(desiredObj, "spec", "template", "jobTemplate", "spec", "template")
    or at(desiredObj, "spec", "template", "broadcastJobTemplate", "spec", "template")""",
        ),
    ),
    "EphemeralJob": Scripts(
        _job(_STATUS + "local ended = status.completionTime ~= nil\n"),
        Karmada(
            counts=("match", "running", "succeeded", "waiting", "failed"),
            first=("startTime",),
            last=("completionTime",),
            phases=("Error", "Failed", "Running", "Waiting", "Unknown", "Paused", "Succeeded"),
            generations=False,
        ),
    ),
    "ContainerRecreateRequest": Scripts(
        karmada=Karmada(
            texts=("message",),
            lists=("containerRecreateStates",),
            last=("completionTime",),
            phases=("Recreating", "Pending", "Completed"),
            generations=False,
            # The member's webhook completes the spec, which never changes afterwards.
            retained="  desiredObj.spec = observedObj.spec\n",
        ),
    ),
    "ImagePullJob": Scripts(
        karmada=Karmada(
            counts=_PULLS,
            lists=("failedNodes",),
            first=("startTime",),
            last=("completionTime",),
            generations=False,
            secrets=True,
        ),
    ),
    "ImageListPullJob": Scripts(
        karmada=Karmada(
            counts=("desired", "active", "completed", "succeeded"),
            lists=("failedImageStatuses",),
            first=("startTime",),
            last=("completionTime",),
            generations=False,
            secrets=True,
        ),
    ),
    "PersistentPodState": Scripts(karmada=Karmada()),
    "PodProbeMarker": Scripts(karmada=Karmada(counts=("matchedPods",))),
    "PodUnavailableBudget": Scripts(
        karmada=Karmada(counts=("unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas"))
    ),
    "ResourceDistribution": Scripts(karmada=Karmada(counts=("desired", "succeeded", "failed"))),
    "WorkloadSpread": Scripts(karmada=Karmada()),
    "NodeImage": Scripts(),  # belongs to one node of one cluster: not propagated
    "NodePodProbe": Scripts(),
}
