"""Hostile texts that are slow to parse: each is refused, or parsed in linear time."""

from collections.abc import Callable

import pytest

from flotilla_common.api import quantity
from flotilla_common.api.admission.workload import is_percent
from flotilla_common.api.images import ImageName
from flotilla_common.api.kinds.advancedcronjob.schedule import Schedule
from flotilla_common.api.kinds.ephemeraljob.api import faults_of
from flotilla_common.api.kinds.sidecarset.expressions import evaluate
from flotilla_common.api.kinds.statefulset.types import interval
from flotilla_common.api.meta import LabelSelector, LabelSelectorRequirement
from flotilla_common.api.numbers import integer, lenient_value, partition_value, strict_value, whole_number
from flotilla_common.api.selectors import Selector
from tests.support.timing import within

LONG = "1" * 200_000


def percent(text: str) -> int:
    return strict_value(f"{text}%", 10, round_up=True)


@pytest.mark.parametrize(
    "read",
    [
        quantity.parse,
        quantity.canonical,
        whole_number,
        percent,
        lambda text: lenient_value(text, 10, round_up=False),
        lambda text: partition_value(f"{text}%", 10),
        lambda text: evaluate(text, "cpu", 1.0),
        lambda text: interval(f"0-{text}"),
        lambda text: ImageName.parse(f"docker.io/{text}"),
        Schedule.parse,
        lambda text: Schedule.parse(f"{'0,' * 100_000}{text} * * * *"),
        lambda text: Schedule.parse(f"@every {text}s"),
        lambda text: Selector.compile(LabelSelector(match_labels={f"{text}/a": ""})),
    ],
)
@pytest.mark.parametrize("end", ["", "x", "..", "%"])
def test_a_text_that_is_too_long_is_refused_at_once(read: Callable[[str], object], end: str) -> None:
    with within(0.5), pytest.raises(ValueError, match=r"."):
        read(LONG + end)


@pytest.mark.parametrize("digits", [201, 1000, 5000])
def test_a_quantity_of_too_many_digits_is_an_error(digits: int) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity.parse("1" * digits)


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("-7", -7), ("+7", 7), ("007", 7), (str(-(2**63)), -(2**63))])
def test_integers_of_64_bits_are_read(text: str, number: int) -> None:
    assert integer(text) == number


@pytest.mark.parametrize("text", ["", "-", "1 ", "1_0", "²", "\uff11", "1.0", "1" * 21, "1" * 5000])
def test_what_is_no_integer_of_64_bits_is_none(text: str) -> None:
    assert integer(text) is None


@pytest.mark.parametrize("value", [10**30, "99999999999999999999%"])
def test_numbers_of_pods_stay_within_32_bits(value: int | str) -> None:
    assert strict_value(value, 2**31 - 1, round_up=True) == lenient_value(value, 2**31 - 1, round_up=True) == 2**31 - 1
    assert strict_value(-(10**30), 1, round_up=True) == -(2**31)


def test_a_percentage_that_nobody_counts_is_none() -> None:
    assert is_percent("100%")
    assert not is_percent("1" * 100 + "%")


def test_names_of_ephemeral_containers_are_compared_in_linear_time() -> None:
    containers = [{"name": f"c{index}"} for index in range(20_000)] + [{"name": "c0"}]
    with within(2.0):
        faults = faults_of({"spec": {"template": {"ephemeralContainers": containers}}})
    duplicates = [str(fault) for fault in faults if "Duplicate" in str(fault)]
    assert duplicates == ['ephemeralContainers[20000].name: Duplicate value: "c0"']


def test_a_selector_with_many_values_is_matched_at_once() -> None:
    values = [f"v{index}" for index in range(50_000)]
    terms = [LabelSelectorRequirement(key="a", operator=operator, values=values) for operator in ("In", "NotIn")]
    one_of, none_of = (Selector.compile(LabelSelector(match_expressions=[term])) for term in terms)
    with within(0.5):
        for index in range(5_000):
            assert one_of.matches({"a": f"v{50_000 - index - 1}"})
            assert not one_of.matches({"a": "w"})
            assert none_of.matches({})
            assert none_of.matches({"a": "w"})
