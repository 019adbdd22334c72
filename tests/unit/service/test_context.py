"""The context that a service gets."""

import dataclasses

from flotilla_common.clock import SystemEntropy
from tests.unit.service.bench import FakeApi, context


def test_two_processes_of_one_name_hold_leases_under_two() -> None:
    """A force-deleted pod of a StatefulSet may still run unnoticed."""
    one, other = (dataclasses.replace(context(FakeApi()), entropy=SystemEntropy()) for _ in range(2))
    assert one.replica == other.replica
    assert one.holder != other.holder
    assert one.holder == one.holder
    assert one.holder.startswith("r1-")


def test_who_surely_follows_another_process_may_hold_its_leases() -> None:
    assert context(FakeApi(), lease_holder="mine").holder == "mine"
