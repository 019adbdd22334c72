"""Flags of install.md §4 that existing manifests pass and that mean nothing to the services that exist so far.

They are known, so that no start-up fails on them, and they have no effect.
"""

SWITCHES = frozenset(
    {
        "add-dir-header",
        "allow-privileged",
        "alsologtostderr",
        "assign-bcj-pods-by-scheduler",
        "assign-pods-by-scheduler",
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

_WORKERS = (
    "advancedcronjob",
    "broadcastjob",
    "daemonset",
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

FLAGS = SWITCHES | _OTHERS | {f"{kind}-workers" for kind in _WORKERS}
