"""Results that are kept with a pod: controllers in one process share their pods, but not what they keep of them."""

from flotilla_cloneset.cloneset import classification
from flotilla_common.api.core import Pod
from flotilla_statefulset.statefulset import pods
from tests.testkit.documents import decoded
from tests.testkit.pods import pod


def test_two_kinds_keep_their_own_traits_of_one_pod() -> None:
    """An orphan may be looked at by both."""
    orphan = decoded(pod(phase="Running"), Pod)
    assert isinstance(classification.traits(orphan), classification.Traits)
    assert isinstance(pods.traits(orphan), pods.Traits)
    assert isinstance(classification.traits(orphan), classification.Traits)


def test_traits_are_kept_where_the_fast_pass_reads_them() -> None:
    orphan = decoded(pod(), Pod)
    known = classification.traits(orphan), pods.traits(orphan)
    assert (orphan.memo[classification._MEMO], orphan.memo[pods._MEMO]) == known
