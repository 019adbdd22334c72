"""The examples of the documents on real containers: kubelets behave as the documents show."""

from tests.integration.cloneset.test_seed_documents import (
    sample,
    test_claims_of_each_pod,
    test_create,
    test_image_changes_and_addresses_stay,
    test_no_deployment_is_made_and_both_readiness_gates_are_met,
    test_percentage_below_100_updates_at_least_one,
    test_pods_to_delete_must_exist,
    test_pods_to_delete_with_fewer_replicas,
    test_pods_to_delete_without_fewer_replicas_makes_a_new_pod,
    test_printed_columns,
    test_recreate_updates_make_other_pods,
    test_revision_names_and_status_of_a_partial_update,
    test_streaming_in_batches_without_losing_a_pod,
)

__all__ = [
    "sample",
    "test_claims_of_each_pod",
    "test_create",
    "test_image_changes_and_addresses_stay",
    "test_no_deployment_is_made_and_both_readiness_gates_are_met",
    "test_percentage_below_100_updates_at_least_one",
    "test_pods_to_delete_must_exist",
    "test_pods_to_delete_with_fewer_replicas",
    "test_pods_to_delete_without_fewer_replicas_makes_a_new_pod",
    "test_printed_columns",
    "test_recreate_updates_make_other_pods",
    "test_revision_names_and_status_of_a_partial_update",
    "test_streaming_in_batches_without_losing_a_pod",
]
