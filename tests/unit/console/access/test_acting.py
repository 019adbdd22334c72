"""Requests as the user: their headers, their rights, and the apiserver's refusals."""

import ssl
from pathlib import Path

import pytest
from multidict import CIMultiDict

from flotilla_common.api.resources import POD, Resource
from flotilla_common.kube.config import ApiConfig
from flotilla_common.kube.interface import ApiError
from flotilla_console.access.acting import Acting, NoCredential, Refused, headers_of, without_credentials
from flotilla_console.access.identity import Identity, authenticated
from tests.unit.console.access.fakes import ReviewApi

CLONE_SET = Resource("apps.kruise.io", "v1beta1", "clonesets", "CloneSet")
JANE = authenticated("jane", ("dev", "ops"), {"acme.com/id": ("7", "8")})
PATH = "/apis/apps.kruise.io/v1beta1/namespaces/shop/clonesets/web"


def test_impersonation_repeats_the_header_of_groups():
    assert list(CIMultiDict(headers_of(JANE)).items()) == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-acme.com%2Fid", "7"),
        ("Impersonate-Extra-acme.com%2Fid", "8"),
    ]


def test_a_token_is_sent_instead():
    identity = Identity(user="jane", groups=("dev",), token="secret-token")
    assert dict(headers_of(identity)) == {"Authorization": "Bearer secret-token"}
    assert "secret-token" not in repr(identity)


@pytest.mark.parametrize("user", ["", "a\r\nImpersonate-Group: system:masters", "a\0b"])
def test_names_that_would_break_headers_are_refused(user: str):
    for identity in (Identity(user=user), Identity(user="jane", groups=(user,))):
        with pytest.raises(Refused):
            headers_of(identity)


async def test_requests_of_a_user():
    api, bearer = ReviewApi(), ReviewApi()
    user = Acting(api.api, bearer.api).client(JANE)
    await user.patch(CLONE_SET, "shop", "web", b"{}", dry_run=True)
    await user.post(POD, "shop", b"{}", name="web-1", subresource="eviction")
    await user.delete(POD, "shop", "web-1")
    await user.log(POD, "shop", "web-1", "main", lines=10, previous=True)
    await user.get(CLONE_SET, "shop", "web")
    assert [(method, path) for method, path, _, _ in api.requests] == [
        ("PATCH", f"{PATH}?fieldManager=flotilla-console&dryRun=All"),
        ("POST", "/api/v1/namespaces/shop/pods/web-1/eviction?fieldManager=flotilla-console"),
        ("DELETE", "/api/v1/namespaces/shop/pods/web-1"),
        (
            "GET",
            "/api/v1/namespaces/shop/pods/web-1/log?container=main&tailLines=10&limitBytes=1048576&previous=true",
        ),
        ("GET", PATH),
    ]
    for _, _, _, headers in api.requests:
        assert headers["Impersonate-User"] == "jane"
        assert CIMultiDict(headers).getall("Impersonate-Group") == ["dev", "ops"]
    assert api.requests[0][3]["Content-Type"] == "application/merge-patch+json"
    assert not bearer.requests


async def test_a_token_goes_only_over_the_client_without_credentials():
    api, bearer = ReviewApi(), ReviewApi()
    await Acting(api.api, bearer.api).client(Identity(user="jane", token="t")).get(POD, "shop", "web-1")
    assert not api.requests
    assert bearer.requests[0][3]["Authorization"] == "Bearer t"


async def test_a_refusal_has_the_words_of_the_apiserver():
    api = ReviewApi()
    api.failure = ApiError(403, "Forbidden", 'clonesets "web" is forbidden: User "jane" cannot patch')
    with pytest.raises(Refused, match='User "jane" cannot patch') as refused:
        await Acting(api.api, api.api).client(JANE).patch(CLONE_SET, "shop", "web", b"{}")
    assert refused.value.code == 403


async def test_the_fixed_identity_never_writes():
    api = ReviewApi()
    user = Acting(api.api, api.api).client(authenticated("viewer", read_only=True))
    for writing in (
        user.patch(CLONE_SET, "shop", "web", b"{}", dry_run=True),
        user.post(POD, "shop", b"{}"),
        user.delete(POD, "shop", "web-1"),
    ):
        with pytest.raises(Refused, match="may only read"):
            await writing
    await user.get(POD, "shop", "web-1")
    assert len(api.requests) == 1


async def test_names_that_lead_elsewhere_are_refused():
    api = ReviewApi()
    with pytest.raises(Refused):
        await Acting(api.api, api.api).client(JANE).delete(POD, "shop", "..")
    assert not api.requests


async def test_the_client_for_tokens_has_no_credentials(tmp_path: Path):
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    given = ApiConfig(
        server="https://here", credential=NoCredential(), tls=tls, headers={"Impersonate-User": "x"}, proxy="http://p"
    )
    made = without_credentials(given)
    assert made.tls is not None
    assert made.tls is not given.tls
    assert (made.tls.check_hostname, made.tls.verify_mode) == (False, ssl.CERT_NONE)
    assert (made.headers, made.proxy, made.server) == ({}, "http://p", "https://here")
    assert await made.credential.authorization() == ""
