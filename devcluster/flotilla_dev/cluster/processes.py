"""Starts, finds and stops the processes of a state folder.

Every program runs in a session of its own, so that it survives the command that started it; tests bind it to their own
life instead. Each process carries the state folder in its environment, so that even one whose record was never written
(the starter was killed in between) is found again, exactly, and never by name. Records are one small file per process,
in `<state>/run`, written at once and read by every later command.

A shell's environment may point to the user's own clusters, buses, registries and logins. The processes get the places
of theirs by flags, and an environment without such variables (`cleaned`).
"""

import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from flotilla_cli.local import ClusterError, Process, boot_id, bound_command, is_alive, start_ticks, write_private
from flotilla_common.clock import Clock

MARK = "FLOTILLA_STATE_DIR"  # in the environment of everything that belongs to one state folder
POLL = 0.02  # seconds between looks at a process that starts or ends

PREFIXES = ("KUBE", "HELM_", "NATS_", "DOCKER_", "ETCD_", "ETCDCTL_", "KWOK_", "OTEL_", "XDG_")
"""Prefixes of variables for programs of a cluster: KUBECONFIG, KUBERNETES_SERVICE_HOST, HELM_KUBECONTEXT …"""

OF_PODS = ("POD_NAME", "POD_NAMESPACE", "POD_IP", "NODE_NAME")
"""Variables with the identity of a pod's process."""

LEADING = ("FLOTILLA_KUBECONFIG", "FLOTILLA_CONTEXT", "FLOTILLA_CONFIG", "FLOTILLA_NATS")
"""Prefixes of Flotilla's settings that point to a cluster, a bus or a file.

Others, such as FLOTILLA_FEATURE_GATES, are for the services of the cluster.
"""


def spawn(
    name: str,
    argv: Sequence[str],
    log: Path,
    *,
    state_dir: Path,
    bound: bool = False,
    env: Mapping[str, str] | None = None,
) -> Process:
    """Start a program in its own session, with its output appended to `log`.

    If `bound`, the kernel kills it when this process ends. Its home is the state folder, because the user's own
    contains logins and settings.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    command = bound_command(argv) if bound else list(argv)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawnp(
        command[0],
        command,
        {**cleaned(), "HOME": str(state_dir), **(env or {}), MARK: str(state_dir)},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return Process(name, pid, start_ticks(pid) or 0, boot_id(), list(argv), str(log))


async def until(
    ready: Callable[[], Awaitable[bool]], process: Process, clock: Clock, seconds: float, problem: str
) -> None:
    """Return when `ready` does.

    Raises ClusterError, with the `problem` and the end of the log, if the process ends first or `seconds` pass.
    """
    deadline = clock.monotonic() + seconds
    while is_alive(process) and clock.monotonic() < deadline:
        if await ready():
            return
        await clock.sleep(POLL)
    raise ClusterError(f"{problem}. {end_of(Path(process.log))}")


async def stop(process: Process, clock: Clock, grace: float = 10) -> None:
    """Terminate the process's session, and kill it after `grace` seconds. Does nothing if it has ended."""
    for signum, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
        if not is_alive(process):
            return
        if signum is signal.SIGKILL or grace > 0:
            send(process, signum)
        deadline = clock.monotonic() + seconds
        while is_alive(process) and clock.monotonic() < deadline:
            await clock.sleep(POLL)


def send(process: Process, signum: int) -> None:
    """Signal the process and its descendants (its group)."""
    try:
        os.killpg(process.pid, signum)
    except ProcessLookupError:
        return


def marked(state_dir: Path) -> Iterator[Process]:
    """Yield every running process with the mark of this state folder, except this one."""
    wanted = f"{MARK}={state_dir}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environ = (entry / "environ").read_bytes()
            argv = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # ended meanwhile, or another user's
        ticks = start_ticks(int(entry.name))
        if ticks is not None and wanted in environ.split(b"\0"):
            yield Process(Path(argv[0]).name if argv else "?", int(entry.name), ticks, boot_id(), argv, "")


def end_of(log: Path) -> str:
    """Return the end of a log with its name, for error messages."""
    return f"End of {log}:\n{tail(log)}"


def tail(log: Path, lines: int = 15) -> str:
    """Return the end of a log, for error messages."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"


def run(
    command: Sequence[str | Path], problem: str, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run a program to its end, with `env` added to the environment. Return its output.

    Raises ClusterError, with the `problem` and the program's messages, if it fails.
    """
    reply = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if reply.returncode:
        raise ClusterError(f"{problem}:\n{(reply.stderr or reply.stdout).strip()}")
    return reply.stdout


def cleaned(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment without variables that point to other clusters, buses and logins."""
    return {name: value for name, value in environment.items() if not _leads_elsewhere(name)}


def _leads_elsewhere(name: str) -> bool:
    return name in OF_PODS or name.startswith((*PREFIXES, *LEADING))


class Processes:
    """The processes of one state folder, by name."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._folder = state_dir / "run"

    def all(self) -> list[Process]:
        """Return every recorded process, running or not, in the order of their start."""
        found = [self.get(path.stem) for path in self._folder.glob("*.json")]
        return sorted((one for one in found if one), key=lambda one: (one.started, one.pid))

    def get(self, name: str) -> Process | None:
        """Return the last process that was started under this name, or None."""
        try:
            return msgspec.json.decode((self._folder / f"{name}.json").read_bytes(), type=Process)
        except FileNotFoundError:
            return None

    def alive(self, name: str) -> Process | None:
        """Return the process of this name if it runs, or None."""
        process = self.get(name)
        return process if process is not None and is_alive(process) else None

    def log(self, name: str) -> Path:
        """Return the log file of this name."""
        return self._state_dir / "logs" / f"{name}.log"

    def spawn(
        self,
        name: str,
        argv: Sequence[str],
        log: Path | None = None,
        *,
        bound: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a process and record it. If `bound`, it ends with this one."""
        process = spawn(name, argv, log or self.log(name), state_dir=self._state_dir, bound=bound, env=env)
        write_private(self._folder / f"{name}.json", msgspec.json.encode(process))
        return process

    def running(self) -> list[Process]:
        """Return the recorded processes that run."""
        return [process for process in self.all() if is_alive(process)]

    async def stop(self, names: Iterable[str], clock: Clock, grace: float = 10) -> None:
        """Stop these processes in this order, and delete their records."""
        for name in names:
            process = self.get(name)
            if process:
                await stop(process, clock, grace)
                (self._folder / f"{name}.json").unlink(missing_ok=True)
