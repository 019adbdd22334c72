"""Flags of install.md §4 that existing manifests pass and that mean nothing to the services that exist so far.

They are known, so that no start-up fails on them, and they have no effect. A kind that comes takes its flag over: what
is a setting is one, whether it stands here or not.
"""

SWITCHES = frozenset(
    {
        "add-dir-header",
        "allow-privileged",
        "alsologtostderr",
        "disable-no-deepcopy",
        "enable-leader-election",
        "enable-pprof",
        "logtostderr",
        "one-output",
        "skip-headers",
        "skip-log-headers",
    }
)
"""Those that are booleans: bare, they take no value from the next word."""

WORKERS = (
    "advancedcronjob",
    "broadcastjob",
    "cloneset",
    "crr",
    "daemonset",
    "imagepulljob",
    "nodeimage",
    "nodepodprobe",
    "persistentpodstate",
    "podprobemarker",
    "podunavailablebudget",
    "resourcedistribution",
    "sidecarset",
    "sidecarterminator",
    "statefulset",
    "uniteddeployment",
    "workloadspread",
)
"""Everything that has a flag for its workers."""

_OTHERS = frozenset(
    {
        "controller-cache-sync-timeout",
        "expectation-timeout",
        "leader-election-id",
        "leader-election-renew-deadline",
        "leader-election-resource-lock",
        "log-backtrace-at",
        "log-dir",
        "log-file",
        "log-file-max-size",
        "pprof-addr",
        "pub-eviction-denied-code",
        "rate-limiter-bucket-size",
        "rate-limiter-qps",
        "rest-config-burst",
        "rest-config-qps",
        "stderrthreshold",
        "sync-period",
        "vmodule",
        "ws-enabled-versioned-status",
    }
)

FLAGS = SWITCHES | _OTHERS | {f"{kind}-workers" for kind in WORKERS}
