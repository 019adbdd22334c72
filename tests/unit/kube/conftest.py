"""Fixtures shared by the tests of kubeconfigs: a certificate, and a login program."""

import subprocess

import pytest


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """Return a self-signed certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("pki")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=t -keyout k -out c"
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command.split(), *names], cwd=folder, check=True, capture_output=True)
    return (folder / "c").read_bytes(), (folder / "k").read_bytes()
