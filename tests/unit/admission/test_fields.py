"""Field errors read as Kubernetes writes them."""

import pytest

from flotilla_common.api.admission import fields
from flotilla_common.api.admission.fields import Fault, aggregate

NEGATIVE = fields.invalid("spec.replicas", -1, fields.NON_NEGATIVE)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        pytest.param(
            NEGATIVE, "spec.replicas: Invalid value: -1: must be greater than or equal to 0", id="number is bare"
        ),
        pytest.param(fields.required("spec.selector"), "spec.selector: Required value", id="no detail"),
        pytest.param(fields.forbidden("spec", "no"), "spec: Forbidden: no", id="forbidden"),
        pytest.param(
            fields.not_supported("spec.p", "Never", ["Always"]),
            'spec.p: Unsupported value: "Never": supported values: "Always"',
            id="not supported",
        ),
        pytest.param(fields.invalid("a", None, "bad"), 'a: Invalid value: "null": bad', id="null"),
        pytest.param(fields.invalid("a", ["p", "p"], "bad"), 'a: Invalid value: ["p","p"]: bad', id="list"),
        pytest.param(fields.invalid("a", True, "bad"), "a: Invalid value: true: bad", id="boolean"),
        pytest.param(Fault("a.b", "Required value: must"), "a.b: Required value: must", id="worded elsewhere"),
    ],
)
def test_text(fault: Fault, text: str) -> None:
    assert str(fault) == text


def test_aggregate() -> None:
    other = fields.required("a")
    assert aggregate([NEGATIVE]) == str(NEGATIVE)
    assert aggregate([NEGATIVE, other, NEGATIVE]) == f"[{NEGATIVE}, {other}]"
