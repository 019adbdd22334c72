"""Feature gates: one value, parsed once, the same in every service (install.md §3).

The tables below list all gates. `Gates.parse` reads the text of `--feature-gates`, expands `AllAlpha` and `AllBeta` to
gates that are not named, and then applies the derived settings, which override even explicit values and whose order
matters: disabling the pod webhook or the node agent disables every gate that depends on it.
"""

import msgspec

_BETA_ON = (
    "PodWebhook",
    "KruiseDaemon",
    "DaemonWatchingPod",
    "WorkloadSpread",
    "PodUnavailableBudgetDeleteGate",
    "InPlaceUpdateEnvFromMetadata",
    "StatefulSetAutoDeletePVC",
    "PodIndexLabel",
    "PodProbeMarkerGate",
    # Off in the reference; on here because they touch only objects that ask for them.
    "ResourcesDeletionProtection",
    "ResourceDistributionGate",
)
_ALPHA_ON = ("ImagePullJobGate",)  # off in the reference, for the same reason
_ALPHA_OFF = (
    "CloneSetShortHash",
    "KruisePodReadinessGate",
    "PreDownloadImageForInPlaceUpdate",
    "PreDownloadImageForDaemonSetUpdate",
    "CloneSetPartitionRollback",
    "DeletionProtectionForCRDCascadingGate",
    "PodUnavailableBudgetUpdateGate",
    "InPlacePodVerticalScaling",
    "InPlaceWorkloadVerticalScaling",
    "TemplateNoDefaults",
    "StatefulSetAutoResizePVCGate",
    "StatefulSetStartOrdinal",
    "RecreatePodWhenChangeVCTInCloneSetGate",
    "SidecarSetPatchPodMetadataDefaultsAllowed",
    "EnableSortSidecarContainerByName",
    "SidecarTerminator",
    "EnablePodProbeMarkerOnServerless",
    "CloneSetEventHandlerOptimization",
    "PreparingUpdateAsUpdate",
    "EnhancedLivenessProbe",
    "EnableExternalCerts",
    "ForceDeleteTimeoutExpectationGate",
    "DefaultHostNetworkHostPortsInPodTemplates",
    "DaemonSetPruneIneligibleNodes",
)
_ALPHA = frozenset(_ALPHA_ON + _ALPHA_OFF)
_BETA = frozenset(_BETA_ON)
STAGES = {"AllAlpha": _ALPHA, "AllBeta": _BETA}
"""The gates of a stage, by the name that stands for all of them."""

_DEFAULT_ON = frozenset(_BETA_ON + _ALPHA_ON)

_NEED_POD_WEBHOOK = frozenset(
    {
        "KruisePodReadinessGate",
        "PodUnavailableBudgetDeleteGate",
        "PodUnavailableBudgetUpdateGate",
        "WorkloadSpread",
        "SidecarSetPatchPodMetadataDefaultsAllowed",
        "EnhancedLivenessProbe",
        "EnablePodProbeMarkerOnServerless",
    }
)
_NEED_NODE_AGENT = frozenset(
    {
        "PreDownloadImageForInPlaceUpdate",
        "PreDownloadImageForDaemonSetUpdate",
        "DaemonWatchingPod",
        "InPlaceUpdateEnvFromMetadata",
        "PodProbeMarkerGate",
        "SidecarTerminator",
        "ImagePullJobGate",
        "EnhancedLivenessProbe",
    }
)
_BOOLEANS = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "false", "FALSE", "False"), False
)

NAMES = _ALPHA | _BETA
"""The names of all gates, without the two that stand for a whole stage."""


class Gates(msgspec.Struct, frozen=True):
    """The enabled gates, after derivation."""

    enabled: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str, custom_resource_enable: str = "") -> "Gates":
        """Parse `Name=bool,…`; an empty text means all defaults.

        `custom_resource_enable` is the comma-separated list of kinds from CUSTOM_RESOURCE_ENABLE: if it is set and does
        not name SidecarSet, PodWebhook is off unless the text sets it (install.md §6).

        Raises ValueError for an unknown name or a value that is not a boolean.
        """
        explicit = _read(text)
        gates = dict.fromkeys(_DEFAULT_ON, True)
        kinds = {kind.strip() for kind in custom_resource_enable.split(",")} - {""}
        if kinds and "SidecarSet" not in kinds:
            gates["PodWebhook"] = False
        for stage, members in STAGES.items():
            if stage in explicit:
                gates |= dict.fromkeys(members, explicit.pop(stage))
        gates |= explicit
        return cls(frozenset(_derive({name for name, on in gates.items() if on})))

    def on(self, name: str) -> bool:
        """Report whether the gate is on. Raises KeyError for an unknown name, which is a bug in the caller."""
        if name not in NAMES:
            raise KeyError(name)
        return name in self.enabled

    def changes(self) -> str:
        """Return the gates that differ from the defaults, in the format of `parse`; empty if all agree."""
        return ",".join(f"{name}={str(name in self.enabled).lower()}" for name in sorted(self.enabled ^ _DEFAULT_ON))


def _read(text: str) -> dict[str, bool]:
    explicit: dict[str, bool] = {}
    for part in text.split(","):
        if not part.strip():
            continue
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in NAMES and name not in STAGES:
            raise ValueError(f"unrecognized feature gate: {name}")
        if not equals:
            raise ValueError(f"missing bool value for feature gate {name}")
        if value not in _BOOLEANS:
            raise ValueError(f"invalid value of feature gate {name}: {value!r} is not true or false")
        explicit[name] = _BOOLEANS[value]
    return explicit


def _derive(enabled: set[str]) -> set[str]:
    if "PodWebhook" not in enabled:
        enabled -= _NEED_POD_WEBHOOK
    if "KruiseDaemon" not in enabled:
        enabled -= _NEED_NODE_AGENT
    if enabled & {"PreDownloadImageForInPlaceUpdate", "PreDownloadImageForDaemonSetUpdate"}:
        enabled.add("ImagePullJobGate")
    if "ResourcesDeletionProtection" not in enabled:
        enabled.discard("DeletionProtectionForCRDCascadingGate")
    return enabled
