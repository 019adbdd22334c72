"""Labels, annotations, conditions and environment names that users, nodes and other tools rely on (common.md §2)."""

REVISION_LABEL = "controller-revision-hash"
TEMPLATE_HASH_LABEL = "pod-template-hash"
REVISION_HASH_LABEL = "controller.kubernetes.io/hash"
INSTANCE_ID_LABEL = "apps.kruise.io/cloneset-instance-id"
SPECIFIED_DELETE_LABEL = "apps.kruise.io/specified-delete"
PULLED_AHEAD, NOT_PULLED_AHEAD = "apps.kruise.io/pre-predownload-created", "apps.kruise.io/image-predownload-ignored"
CLAIM_HASH_ANNOTATION = "kruise.io/cloneset-volumeclaimtemplate-hash"

STATE_LABEL = "lifecycle.apps.kruise.io/state"
STATE_TIME_ANNOTATION = "lifecycle.apps.kruise.io/timestamp"

IN_PLACE_STATE = "apps.kruise.io/inplace-update-state"
IN_PLACE_GRACE = "apps.kruise.io/inplace-update-grace"
LEGACY_IN_PLACE_STATE = "inplace-update-state"
LEGACY_IN_PLACE_GRACE = "inplace-update-grace"
RUNTIME_CONTAINERS_META = "apps.kruise.io/runtime-containers-meta"
SIDECAR_SET_HASH = "kruise.io/sidecarset-hash"

IN_PLACE_READY = "InPlaceUpdateReady"
POD_READY = "KruisePodReady"
CONTAINER_BARRIER_ENV = "KRUISE_CONTAINER_BARRIER"

RECREATE_POD_UID = "crr.apps.kruise.io/pod-uid"
RECREATE_NODE_NAME = "crr.apps.kruise.io/node-name"
RECREATE_ACTIVE = "crr.apps.kruise.io/active"
RECREATE_UNREADY = "crr.apps.kruise.io/unready-acquired"
RECREATE_SNAPSHOT = "crr.apps.kruise.io/sync-container-statuses"
