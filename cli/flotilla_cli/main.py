"""The `flotilla` command: a click group that imports a verb only when it is used, so that every start is quick.

Its own verbs are in this package. Other packages add theirs as entry points of the group `flotilla.commands`: those of
flotilla-dev are listed here with the rest, so that help and errors can name that package where it is not installed.
"""

from importlib import import_module
from typing import NamedTuple

import click

from flotilla_cli import plugins


class Verb(NamedTuple):
    """A command: its help without importing it, and its module here or the package that brings it."""

    help: str
    module: str = ""
    package: str = ""


VERBS = {
    "up": Verb("Start a local cluster with Flotilla, and show an in-place update.", package=plugins.LOCAL_PACKAGE),
    "down": Verb("Stop the local cluster and remove what it left.", package=plugins.LOCAL_PACKAGE),
    "status": Verb("Show the local cluster's processes and their health.", package=plugins.LOCAL_PACKAGE),
    "install": Verb("Install Flotilla on a cluster: CRDs, roles, webhook configurations.", "commands.install"),
    "uninstall": Verb("Remove Flotilla from a cluster.", "commands.install"),
    "adopt": Verb("Migrate a cluster from OpenKruise, or back.", "commands.adopt"),
    "run": Verb("Run services outside the cluster, against any cluster.", "commands.run"),
    "node-creds": Verb("Create credentials for the agent of a node.", package=plugins.LOCAL_PACKAGE),
    "bus-keys": Verb("Create the keys of a bus inside a cluster (used by the chart).", "commands.bus_keys"),
    "get": Verb("Show a workload as a tree: revisions, pods, what they wait for.", "commands.get"),
    "plan": Verb("Preview what an apply would do, pod by pod, without writing anything.", "commands.plan"),
    "explain": Verb("Explain what a workload waits for, and why.", "commands.explain"),
    "history": Verb("Show a rollout: who changed what, each decision and write.", "commands.history"),
    "tail": Verb("Follow what the services do, in time order.", "commands.tail"),
    "bus": Verb("Show the bus: streams, rates, lagging consumers, large objects.", "commands.bus"),
    "console": Verb("Show all of this in a browser, with the rights of your kubeconfig.", "commands.console"),
    "doctor": Verb("Find problems of an installation, and what to do about them.", "commands.doctor"),
    "bundle": Verb("Record a workload in a file, for support.", "commands.bundle"),
    "replay": Verb("Plan a recorded workload again, step by step.", "commands.replay"),
    "image": Verb("Build the container image of all services, without Docker.", package=plugins.LOCAL_PACKAGE),
}
"""All commands, in the order in which a user needs them."""


class Commands(click.Group):
    """The group of all commands that are installed."""

    def verbs(self) -> dict[str, Verb]:
        """Return the commands that `--help` lists."""
        found = plugins.commands()
        known = {name: verb for name, verb in VERBS.items() if verb.module or name in found}
        return known | {
            name: Verb("", package=point.dist.name if point.dist else "")
            for name, point in found.items()
            if name not in VERBS
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, also for completion."""
        return list(self.verbs())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command. Raises click.ClickException for one whose package is not installed."""
        verb = self.verbs().get(cmd_name)
        if verb is None:
            known = VERBS.get(cmd_name)
            if known and not known.module and not ctx.resilient_parsing:
                raise click.ClickException(plugins.missing(f"`flotilla {cmd_name}`"))
            return None
        if verb.module:
            command = getattr(import_module(f"flotilla_cli.{verb.module}"), cmd_name.replace("-", "_"))
        else:
            command = plugins.commands()[cmd_name].load()
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. A file that cannot be read or written is reported in one line, without a traceback."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.filename is None:  # a broken pipe, for example: click ends quietly then
                raise
            raise click.ClickException(f"{error.filename}: {error.strerror}") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of --help without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.help) for name, verb in self.verbs().items()])


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="flotilla-cli")
def main() -> None:
    """Flotilla: OpenKruise's workloads as small services around a NATS bus."""
    # Imported here, so that --help imports nothing heavy.
    import_module("flotilla_common.api.jsontext").read_as_deep_as_the_apiserver()
