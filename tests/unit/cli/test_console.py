"""`flotilla console`: its settings, its end, and what it prints."""

import asyncio
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from flotilla_cli.commands import console as command
from flotilla_cli.commands.console import console, settings_of
from flotilla_common.service import Context, Service
from flotilla_common.settings import Settings


def test_it_listens_on_this_machine_and_asks_for_the_key(tmp_path: Path) -> None:
    found = settings_of(9000, tmp_path / "key", with_bus=True)
    assert (found.console_listen, found.console_port, found.console_sign_in) == ("127.0.0.1", 9000, "key")
    assert found.console_key_file == str(tmp_path / "key")
    assert found.bus_fallback_after == Settings.bus_fallback_after


def test_without_a_bus_it_watches_directly_at_once(tmp_path: Path) -> None:
    assert settings_of(9000, tmp_path / "key", with_bus=False).bus_fallback_after == 0


def test_wrong_variables_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOTILLA_CONSOLE_LOG_LINES", "many")
    with pytest.raises(click.ClickException, match="FLOTILLA_CONSOLE_LOG_LINES: must be a whole number"):
        settings_of(9000, tmp_path / "key", with_bus=True)


def test_the_url_is_printed_once_the_console_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(
        '{"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "current-context": "x",'
        ' "users": [{"name": "u", "user": {"token": "t"}}], "contexts": [{"name": "x", "context":'
        ' {"cluster": "c", "user": "u"}}]}'
    )
    opened: list[str] = []
    shown = asyncio.Event()

    async def serve(context: Context) -> None:
        server = await asyncio.start_server(
            lambda _, writer: writer.close(), "127.0.0.1", context.settings.console_port
        )
        async with server:
            await shown.wait()

    def launch(url: str) -> int:
        opened.append(url)
        shown.set()
        return 0

    monkeypatch.setattr(command, "load_service", lambda _: Service("console", serve))
    monkeypatch.setattr(click, "launch", launch)
    monkeypatch.delenv("FLOTILLA_NATS", raising=False)
    ended = CliRunner().invoke(console, ["--kubeconfig", str(tmp_path / "config")])
    assert ended.exit_code == 0, ended.output
    assert opened[0].startswith("http://127.0.0.1:")
    assert f"  {opened[0]}\n" in ended.output
