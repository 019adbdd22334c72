"""Lifecycle hooks: users hold pods, and let them go (cloneset.md §8.4)."""

from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import answer, cloneset, image, running, spec, template
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import Create, Wait


def hooked(hook: str, *, unready: bool = False, held: bool = True) -> Json:
    """Return a CloneSet whose pods carry the label of the hook."""
    handler = {"labelsHandler": {"hold": "yes"}, "markPodNotReady": unready}
    document = cloneset(2, top={"lifecycle": {hook: handler}})
    pods = template("one")
    if held:
        pods["metadata"]["labels"]["hold"] = "yes"
    document["spec"]["template"] = pods
    return document


SCENARIOS = (
    Scenario(
        name="held-before-deletion",
        given=running(hooked("preDelete")),
        when=(spec(replicas=1), Wait(state="PreparingDelete"), answer("PreparingDelete", hold=None)),
        then=End(pods={"one": 1}),
    ),
    Scenario(
        name="held-unready-before-deletion",
        given=running(hooked("preDelete", unready=True)),
        when=(spec(replicas=1), Wait(state="PreparingDelete"), answer("PreparingDelete", hold=None)),
        then=End(pods={"one": 1}),
    ),
    Scenario(
        name="deletion-cancelled",
        given=running(hooked("preDelete")),
        when=(spec(replicas=1), Wait(state="PreparingDelete"), spec(replicas=2)),
        then=End(pods={"one": 2}, status={"availableReplicas": 2}),
    ),
    Scenario(
        name="held-before-update",
        given=running(hooked("inPlaceUpdate")),
        when=(
            image("two"),
            Wait(state="PreparingUpdate"),
            answer("PreparingUpdate", hold=None),
            Wait(state="Updated"),
            answer("Updated", hold="yes"),
            Wait(state="PreparingUpdate"),
            answer("PreparingUpdate", hold=None),
            Wait(state="Updated"),
            answer("Updated", hold="yes"),
        ),
        then=End(pods={"two": 2}, status={"availableReplicas": 2}),
        exact=False,
    ),
    Scenario(
        name="rolled-back-while-held",
        given=running(hooked("inPlaceUpdate", unready=True)),
        when=(image("two"), Wait(state="PreparingUpdate"), image("one")),
        then=End(pods={"one": 2}, status={"availableReplicas": 2}),
    ),
    Scenario(
        name="held-before-normal",
        given=(),
        when=(
            Create(document=hooked("preNormal", held=False)),
            Wait(pods=2, serving=2),
            answer("PreparingNormal", hold="yes"),
        ),
        then=End(pods={"one": 2}, status={"readyReplicas": 2, "availableReplicas": 2}),
    ),
)
