"""Paths of resources, safe against hostile names."""

import pytest

from flotilla_common.api.resources import POD, Resource


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("web-0", "/api/v1/namespaces/shop/pods/web-0"),
        ("system:node", "/api/v1/namespaces/shop/pods/system:node"),
        ("../secrets/s", "/api/v1/namespaces/shop/pods/..%2Fsecrets%2Fs"),
        ("a?watch=1", "/api/v1/namespaces/shop/pods/a%3Fwatch%3D1"),
        ("a HTTP/1.1\r\nHost: x", "/api/v1/namespaces/shop/pods/a%20HTTP%2F1.1%0D%0AHost:%20x"),
    ],
)
def test_a_name_stays_one_segment(name: str, path: str) -> None:
    assert POD.path("shop", name) == path


def test_a_group_stays_one_segment() -> None:
    assert Resource("x/../..", "v1", "secrets", "").path() == "/apis/x%2F..%2F../v1/secrets"


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid name"):
        POD.path("shop", name)
