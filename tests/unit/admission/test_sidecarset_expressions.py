"""The expressions of resource policies: values, and what cannot be evaluated (sidecarset.md §6.11)."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flotilla_common.api.kinds.sidecarset.expressions import MAX_DEPTH, Quantity, amount_of, evaluate


@pytest.mark.parametrize(
    ("expression", "aggregate", "expected"),
    [
        pytest.param("max(cpu*30%, 50m)", "1", "300m", id="row 22"),
        pytest.param("max(cpu*30%, 50m)", "100m", "50m", id="at least"),
        pytest.param("min(memory*10%, 1Gi)", "100Gi", "1Gi", id="at most"),
        pytest.param("cpu*50%", "0", "0", id="row 24"),
        pytest.param("cpu*29%", "100m", "28m", id="cut, not rounded"),
        pytest.param("29%*cpu", "100m", "28m", id="the other way round"),
        pytest.param("cpu/3", "1", "333m", id="a quotient is cut"),
        pytest.param("memory*50%", "400Mi", "200Mi", id="powers of 1024 stay"),
        pytest.param("memory/3", "1Gi", "357913941333m", id="unless that would not be exact"),
        pytest.param("memory*0.5", "1G", "500M", id="powers of 1000 stay"),
        pytest.param("memory + 50Mi", "50Mi", "100Mi", id="sum"),
        pytest.param("memory + 50Mi", "0", "50Mi", id="zero is written like the other"),
        pytest.param("memory + 500k", "1Mi", "1548576", id="sum of both powers"),
        pytest.param("cpu + 1", "500m", "1500m", id="a number in a sum is a quantity"),
        pytest.param("cpu + 0.0019", "500m", "501m", id="cut to thousandths"),
        pytest.param("cpu - 0.1 * 2", "1", "800m", id="products first"),
        pytest.param("1 - 2 + cpu", "3", "2", id="from the left"),
        pytest.param("cpu / 2 / 2", "1", "250m", id="quotients from the left"),
        pytest.param("(cpu + 1) * 2", "1", "4", id="brackets"),
        pytest.param("-cpu * -2", "1", "2", id="minus is tightest"),
        pytest.param("--cpu", "1", "1", id="minus twice"),
        pytest.param("MAX(CPU, Min(2, 3))", "1", "2", id="whatever case"),
        pytest.param("max(1, 0.5)", "1", "1", id="numbers compared"),
        pytest.param(" max ( cpu\t, 2 )\n", "1", "2", id="blanks"),
        pytest.param("2", "1", "2", id="a number of cores"),
        pytest.param(".5", "1", "500m", id="half a core"),
        pytest.param("1e3", "1", "1k", id="exponent"),
        pytest.param("50%", "1", "500m", id="a share of one core"),
        pytest.param("0*memory + 0.9", "1Gi", "900m", id="a quantity as soon as one is in it"),
        pytest.param("cpu*1.0", "1n", "1m", id="thousandths are rounded up before"),
        pytest.param("cpu", "1n", "1n", id="untouched"),
    ],
)
def test_values(expression: str, aggregate: str, expected: str) -> None:
    assert str(amount_of(expression, Quantity.parse(aggregate))) == expected


def test_a_plain_number_stays_one_where_it_is_validated() -> None:
    assert evaluate("max(memory * 2.5, 1)", "memory", 1.0) == 2.5


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("", "ends unexpectedly", id="empty"),
        pytest.param("cpu +", "ends unexpectedly", id="half a sum"),
        pytest.param("cpu cpu", "has an unexpected 'cpu'", id="two values"),
        pytest.param("(cpu", "ends unexpectedly", id="open bracket"),
        pytest.param("cpu)", r"has an unexpected '\)'", id="closing bracket"),
        pytest.param("*cpu", r"has an unexpected '\*'", id="no left side"),
        pytest.param("+cpu", r"has an unexpected '\+'", id="no plus in front"),
        pytest.param("max(cpu)", r"has an unexpected '\)'", id="one argument"),
        pytest.param("max(1, 2, 3)", "has an unexpected ','", id="three arguments"),
        pytest.param("avg(1, 2)", "unknown function avg", id="function"),
        pytest.param("memory + cpu", "undefined variable cpu", id="the other variable"),
        pytest.param("MEMORY", "undefined variable memory", id="the word in lower case decides"),
        pytest.param("disk", "undefined variable disk", id="no such variable"),
        pytest.param("cpu - 2", "is negative", id="negative"),
        pytest.param("-1", "is negative", id="a negative number"),
        pytest.param("cpu * 2m", "multiplied", id="quantity times quantity"),
        pytest.param("2 / 100m", "divided by a quantity", id="by a quantity"),
        pytest.param("cpu / 0", "divided by zero", id="by zero"),
        pytest.param("cpu / (1 - 1)", "divided by zero", id="by what is zero"),
        pytest.param("5K", "cannot be read from '5K' on", id="suffix"),
        pytest.param("1e", "cannot be read", id="half an exponent"),
        pytest.param("50 m", "has an unexpected 'm'", id="a blank before the suffix"),
        pytest.param("50m%", "cannot be read", id="two suffixes"),
        pytest.param("1.2.3", "cannot be read", id="two points"),
        pytest.param("cpu ^ 2", r"cannot be read from '\^ 2' on", id="operator"),
        pytest.param("1e400", "too large", id="no number"),
        pytest.param("1e300 * 1e300", "too large", id="a product that is none"),
        pytest.param("cpu * 1e30", "too large", id="more than 64 bits"),
        pytest.param("(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH, "nested too deeply", id="brackets"),
        pytest.param("-" * MAX_DEPTH + "1", "nested too deeply", id="minus"),
    ],
)
def test_what_cannot_be_evaluated(expression: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        amount_of(expression, Quantity.parse("1"))


@given(st.text(alphabet="cpumemoryax 0123456789.%mKMGiTPe+-*/(),", max_size=30))
def test_any_text_has_a_value_or_is_refused(expression: str) -> None:
    with contextlib.suppress(ValueError):
        assert amount_of(expression, Quantity.parse("1")).amount >= 0
