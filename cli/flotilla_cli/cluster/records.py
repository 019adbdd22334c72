"""What was started, one small file per process in `<state>/run`: written at once, read by every later command."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from flotilla_cli.cluster.layout import write_private
from flotilla_cli.cluster.process import Process, is_alive, spawn, stop
from flotilla_common.clock import Clock


class Records:
    """The processes of one state folder, by name."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._folder = state_dir / "run"

    def all(self) -> list[Process]:
        """Every recorded process, running or not, in the order of their start."""
        found = [self.get(path.stem) for path in self._folder.glob("*.json")]
        return sorted((one for one in found if one), key=lambda one: (one.started, one.pid))

    def get(self, name: str) -> Process | None:
        """The last process started under this name."""
        try:
            return msgspec.json.decode((self._folder / f"{name}.json").read_bytes(), type=Process)
        except FileNotFoundError:
            return None

    def alive(self, name: str) -> Process | None:
        """The process of this name, if it runs."""
        process = self.get(name)
        return process if process is not None and is_alive(process) else None

    def log(self, name: str) -> Path:
        """Where the process of this name logs."""
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
        """Start a process and record it. `bound`: it dies with us."""
        process = spawn(name, argv, log or self.log(name), state_dir=self._state_dir, bound=bound, env=env)
        write_private(self._folder / f"{name}.json", msgspec.json.encode(process))
        return process

    def running(self) -> list[Process]:
        """The recorded processes that run."""
        return [process for process in self.all() if is_alive(process)]

    async def stop(self, names: Iterable[str], clock: Clock, grace: float = 10) -> None:
        """Stop these processes, in this order, and forget them."""
        for name in names:
            process = self.get(name)
            if process:
                await stop(process, clock, grace)
                (self._folder / f"{name}.json").unlink(missing_ok=True)
