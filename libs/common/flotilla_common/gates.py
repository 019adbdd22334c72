"""Feature gates: one value, parsed once, the same in every service (install.md §3).

The table below is the whole catalogue. `Gates.parse` reads the users' `--feature-gates` text, lets `AllAlpha` and
`AllBeta` fill in what is not named, and then applies the derived settings, which override even explicit values and
whose order matters: switching the pod webhook or the node agent off takes with it whatever cannot work without them.
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
"""What stands for all gates of a stage, and those gates."""

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
"""Every gate that can be named, without the two that stand for a whole stage."""


class Gates(msgspec.Struct, frozen=True):
    """The gates that are on, after derivation."""

    enabled: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str, custom_resource_enable: str = "") -> "Gates":
        """The gates for `Name=bool,…`; an empty text means all defaults.

        `custom_resource_enable` is the comma list of kinds of CUSTOM_RESOURCE_ENABLE: when it is set and does not name
        SidecarSet, PodWebhook is off unless the text says otherwise (install.md §6).

        Raises ValueError for an unknown name or a value that is no boolean.
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
        """Whether the gate is on. Raises KeyError for a name that is no gate: a slip in the code, not in the input."""
        if name not in NAMES:
            raise KeyError(name)
        return name in self.enabled

    def changes(self) -> str:
        """The gates that differ from the defaults, as `parse` reads them; empty when none does."""
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
