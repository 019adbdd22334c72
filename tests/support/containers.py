"""Servers for tests from containers, by testcontainers, where there is a Docker engine that has their images.

FLOTILLA_TEST_CONTAINERS says whether: `auto` (unless it is set) means where an engine answers and has the image or can
pull it; `always` fails where that is not so; with `never` everything is started from this machine's programs.

Containers end with the test, also when it is killed: not by testcontainers' own reaper, which is one more image to
pull and needs the engine's socket, but by a process of ours that waits for the end of the test's.
"""

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import docker
from docker.errors import DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

SWITCH = "FLOTILLA_TEST_CONTAINERS"
AUTO, ALWAYS, NEVER = "auto", "always", "never"
ROOT = Path(__file__).parents[2]


@cache
def contained(image: str) -> bool:
    """Report whether this server runs in a container. Raises DockerException if it has to and cannot."""
    choice = os.environ.get(SWITCH, AUTO)
    if choice not in {AUTO, ALWAYS, NEVER}:
        raise ValueError(f"{SWITCH} is {AUTO}, {ALWAYS} or {NEVER}, not {choice!r}")
    if choice == NEVER:
        return False
    try:
        _have(image)
    except DockerException:
        if choice == ALWAYS:
            raise
        return False
    return True


def _have(image: str) -> None:
    """Ensure that the image is present. Raises DockerException if no engine answers or it cannot be pulled."""
    _look_for_an_engine()
    client = docker.from_env()
    try:
        client.images.get(image)
    except ImageNotFound:
        client.images.pull(image)
    finally:
        client.close()


def _look_for_an_engine() -> None:
    """Raise DockerException if the engine's socket has no listener: the engine's client would leave a socket open."""
    host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if host.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as one:
            try:
                one.connect(host.removeprefix("unix://"))
            except OSError as error:
                raise DockerException(f"no Docker engine at {host}: {error}") from error


@contextmanager
def container(
    image: str,
    entrypoint: Sequence[str] | None = None,
    *,
    folder: Path | None = None,
    publish: int = 0,
    env: dict[str, str] | None = None,
) -> Generator[DockerContainer]:
    """Start a container and remove it after the block.

    With a `folder` it has that folder under the same path, and works in it as this user; it shares this machine's
    network unless it has to `publish` a port.
    """
    testcontainers_config.ryuk_disabled = True
    name = f"flotilla-test-{uuid.uuid4().hex}"
    options: dict[str, object] = {"user": f"{os.getuid()}:{os.getgid()}"}
    if entrypoint:
        options["entrypoint"] = list(entrypoint)
    made = DockerContainer(image, env=env, name=name, ports=[publish] if publish else None)
    if not publish:
        options["network_mode"] = "host"
    if folder:
        made.with_volume_mapping(str(folder), str(folder), "rw")
    with removed(name), made.with_kwargs(**options) as started:
        yield started


def inner(started: DockerContainer) -> Container:
    """Return the container as an object of the engine's own client, to kill, pause and start it."""
    found = started.get_wrapped_container()
    assert found is not None
    return found


@contextmanager
def removed(name: str) -> Generator[None]:
    """Remove the container of this name after the block, also when this process is killed in it."""
    command = [sys.executable, "-m", __name__, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, cwd=ROOT) as heir:
        yield
    assert heir.returncode == 0, f"{name} is left"


def main() -> None:
    """Wait for the end of the standard input, then remove the container that is named."""
    sys.stdin.read()
    client = docker.from_env()
    try:
        client.containers.get(sys.argv[1]).remove(force=True)
    except NotFound:
        return
    finally:
        client.close()


if __name__ == "__main__":
    main()
