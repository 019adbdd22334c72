"""Examples of the documents that kubelets carry out, on real containers: these behave as the documents show."""

from tests.integration.cloneset.test_seed_documents import (
    sample,
    test_claims_of_each_pod,
    test_create,
    test_image_changes_and_addresses_stay,
    test_no_deployment_is_made_and_both_readiness_gates_are_met,
    test_recreate_updates_make_other_pods,
    test_streaming_in_batches_without_losing_a_pod,
)

__all__ = [
    "sample",
    "test_claims_of_each_pod",
    "test_create",
    "test_image_changes_and_addresses_stay",
    "test_no_deployment_is_made_and_both_readiness_gates_are_met",
    "test_recreate_updates_make_other_pods",
    "test_streaming_in_batches_without_losing_a_pod",
]
