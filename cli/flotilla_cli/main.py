"""The `flotilla` command: a click group that imports a verb only when it is used, so that every start is quick."""

from importlib import import_module
from importlib.util import find_spec

import click

VERBS = {
    "up": "flotilla_cli.cluster.verbs:up",
    "down": "flotilla_cli.cluster.verbs:down",
    "status": "flotilla_cli.cluster.verbs:status",
    "install": "flotilla_cli.install_verbs:install",
    "uninstall": "flotilla_cli.install_verbs:uninstall",
    "run": "flotilla_cli.run:run",
    "node-creds": "flotilla_cli.node_creds:node_creds",
    "get": "flotilla_cli.get:get",
    "explain": "flotilla_cli.explain:explain",
    "tail": "flotilla_cli.tail:tail",
    "bundle": "flotilla_cli.bundle.verb:bundle",
    "replay": "flotilla_cli.replay.verb:replay",
}

SHORT = {  # what --help says of each, so that it need not import them
    "up": "Start a local cluster with Flotilla, and show an in-place update.",
    "down": "Stop the local cluster and remove what it left.",
    "status": "Show the local cluster's processes and their health.",
    "install": "Install Flotilla on a cluster: CRDs, roles, webhook configurations.",
    "uninstall": "Remove Flotilla from a cluster.",
    "run": "Run services outside the cluster, against any cluster.",
    "node-creds": "Make credentials for the agent of a node.",
    "get": "Show a workload as a tree: revisions, pods, what they wait for.",
    "explain": "Say why a workload does what it does.",
    "tail": "Follow what the services do, in time order.",
    "bundle": "Record a workload in a file, for support.",
    "replay": "Plan a recorded workload again, step by step.",
}


class Verbs(click.Group):
    """The group; a verb exists when its module does."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which one needs them."""
        return [name for name, target in VERBS.items() if find_spec(target.partition(":")[0])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module, _, attribute = VERBS[cmd_name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb. A file that cannot be read or written is the user's to mend: one line, no traceback."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.filename is None:  # a broken pipe, for example: click ends quietly then
                raise
            raise click.ClickException(f"{error.filename}: {error.strerror}") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in --help, without importing the verbs."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, SHORT[name]) for name in self.list_commands(ctx)])


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="flotilla-cli", prog_name="flotilla")
def main() -> None:
    """Flotilla: OpenKruise's workloads as small services around a NATS bus."""
