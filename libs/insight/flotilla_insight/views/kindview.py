"""The facts about one kind that the command line needs beside its `Kind` (api/kinds/kind.py).

A kind joins with its `KindView` in the `VIEWS` of a module of this package; every member has a default that fits most
kinds. docs/development.md lists what each sort of kind declares.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import REVISION, Resource
from flotilla_common.kube.interface import Api
from flotilla_common.workload.causes import Group, PodContext
from flotilla_insight.published import Why
from flotilla_insight.workload import Workload


class Summary(msgspec.Struct, frozen=True):
    """The display of an object without revisions in `get`: a headline, and a table of its parts."""

    headline: str
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()


class PodQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for the pods of an object."""

    selector: LabelSelector
    everywhere: bool = False  # in all namespaces, instead of the object's own
    keep: Callable[[Pod], bool] | None = None  # selects further; None: the pods that the object owns


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The placement of an object that has a pod on each node."""

    why_not: Callable[[Node], str]  # why a node gets no pod; empty: it gets one
    once: bool = False  # a pod that has ended is not replaced


class CoveredNodes(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes and pods of an object that has a pod on each node."""

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    coverage: Coverage


class Related(msgspec.Struct, frozen=True, kw_only=True):
    """The pods and nodes of an object, with their context."""

    pods: Sequence[Pod] = ()  # pods to diagnose
    nodes: Sequence[str] = ()
    troubles: Sequence[Group] = ()  # of objects other than pods and nodes, without a service of ours
    basis: PodContext = PodContext()
    namespaced: bool = False  # pods of several namespaces
    served: CoveredNodes | None = None  # None: not a pod on each node, or not known
    denied: frozenset[str] = frozenset()  # what may not be read


class UpdatePolicy(msgspec.Struct, frozen=True):
    """The field of `updateStrategy.rollingUpdate` that allows in-place updates, with its value for never.

    The latter is the default.
    """

    field: str = "podUpdatePolicy"
    never: str = "ReCreate"


class CreatedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a simulated plan creates for an object of the kind."""

    kind: str
    has_new_instance: bool  # it has an instance id that no claim has
    has_new_owner: bool  # its owner is created by the apply, or later


class ReasonSource(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster-scoped object of another kind, whose plans may have reasons about this one."""

    resource: Resource
    name: str
    objects: frozenset[str]  # names in such reasons


LastWhys = Callable[[Resource, Iterable[str]], Awaitable[Mapping[str, Why]]]
"""Reads the last records of why.v1 of objects, by name, without missing ones."""


class StepChange(NamedTuple):
    """A change of an object by a write, for people; None: absent."""

    what: str
    before: str | None
    after: str | None


class PodQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A pod about which each kind is asked for lines."""

    api: Api
    pod: Pod
    everything: bool  # also about other pods
    whys: LastWhys


def owns(stored: Json, dependent: Json) -> bool:
    """Report whether `stored` is an owner of the other object."""
    uid = member(stored, "metadata").get("uid")
    return any(one.get("uid") == uid for one in mappings(member(dependent, "metadata").get("ownerReferences")))


class KindView(msgspec.Struct, frozen=True, kw_only=True):
    """One kind, as the command line sees it. Raw objects are in the storage version."""

    resource: Resource

    # flotilla get
    workload: Callable[[bytes], Workload] | None = None  # reads a set with revisions and pods
    summary: Callable[[bytes], Summary] = lambda _: Summary("")  # reads all others
    revisions: Resource = REVISION  # objects that keep its templates; ReplicaSets own the pods, too
    children: tuple[Resource, ...] = ()  # kinds of owned objects that have pods of their own

    # flotilla explain
    pods: Callable[[bytes], PodQuery | None] | None = None  # None: those of the workload
    coverage: Callable[[bytes], Coverage | None] | None = None  # for kinds with a pod on each node
    related: Callable[[Api, bytes, datetime], Awaitable[Related]] | None = None  # instead of `pods` and `coverage`
    about_pod: Callable[[PodQuestion], Awaitable[Sequence[str]]] | None = None  # lines of `explain pod`
    remarks: Callable[[Api, bytes], Awaitable[Sequence[str]]] | None = None  # lines about the object
    reason_sources: Callable[[Api, bytes], Awaitable[Sequence[ReasonSource]]] | None = (
        None  # whose reasons may be about the object
    )

    # flotilla plan
    update_policy: UpdatePolicy = UpdatePolicy()
    update_strategy: Callable[[Json], Json] = lambda stored: member(stored, "spec", "updateStrategy")  # of its pods
    revision: Callable[[Json], str] | None = None  # the revision that pods move to; None: as the workload says
    concerns: Callable[[Json, Json], bool] = owns  # (object, pod): whether the pod belongs to the object
    has_ended_in: Callable[[Json, Json], bool] = lambda stored, pod: False  # in a pod that runs on
    has_unknown_name: Callable[[CreatedObject], bool] = lambda _: (
        False
    )  # whether the name is known only after the real apply
    plan_reads: tuple[Resource, ...] = ()  # further resources that the simulation reads
    plays_along: bool = False  # its objects are planned, too, when another controller writes their status
    carried_out_by: tuple[Resource, ...] = ()  # kinds whose controllers carry out what it asks for
    step_changes: Callable[[Json, Json], Sequence[StepChange]] = lambda before, after: ()  # what a write changes
    plays_first_run: bool = False  # of a schedule, only one run is simulated

    # flotilla adopt, install and bundle
    progress: Callable[[Json, Json], str] | None = None  # (spec, status): what is under way; empty: nothing
    guards_removal: bool = False  # its objects keep a chart from being removed (install.md §8)
    secret_fields: frozenset[str] = frozenset()  # fields whose values may be secret, besides those of pods
    public_variables: frozenset[str] = frozenset()  # environment variables that our services set and read


def revision_of(kind: KindView, stored: Json) -> str:
    """Return the full name of the revision that the object's pods move to; empty without one."""
    if kind.revision is not None:
        return kind.revision(stored)
    return kind.workload(msgspec.json.encode(stored)).update_revision if kind.workload is not None else ""
