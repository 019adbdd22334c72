"""The `flotilla` command: a click group that imports a verb only when it is used, so that it starts quickly."""

from importlib import import_module
from importlib.util import find_spec

import click

VERBS = {  # module of each verb, and its line in --help, which imports none of them
    "up": ("flotilla_cli.cluster.verbs", "Start a local cluster with Flotilla, and show an in-place update."),
    "down": ("flotilla_cli.cluster.verbs", "Stop the local cluster and remove what it left."),
    "status": ("flotilla_cli.cluster.verbs", "Show the local cluster's processes and their health."),
    "install": ("flotilla_cli.install_verbs", "Install Flotilla on a cluster: CRDs, roles, webhook configurations."),
    "uninstall": ("flotilla_cli.install_verbs", "Remove Flotilla from a cluster."),
    "adopt": ("flotilla_cli.adopt_verb", "Migrate a cluster from OpenKruise, or back."),
    "run": ("flotilla_cli.run", "Run services outside the cluster, against any cluster."),
    "node-creds": ("flotilla_cli.node_creds", "Create credentials for the agent of a node."),
    "bus-keys": ("flotilla_cli.install.bus_keys", "Create the keys of a bus inside a cluster (used by the chart)."),
    "get": ("flotilla_cli.get", "Show a workload as a tree: revisions, pods, what they wait for."),
    "plan": ("flotilla_cli.foresee.verb", "Preview what an apply would do, pod by pod, without writing anything."),
    "explain": ("flotilla_cli.explain", "Explain what a workload waits for, and why."),
    "history": ("flotilla_cli.history.verb", "Show a rollout: who changed what, each decision and write."),
    "tail": ("flotilla_cli.tail", "Follow what the services do, in time order."),
    "bus": ("flotilla_cli.buslook.verb", "Show the bus: streams, rates, lagging consumers, large objects."),
    "doctor": ("flotilla_cli.doctor.verb", "Find problems of an installation, and what to do about them."),
    "bundle": ("flotilla_cli.bundle.verb", "Record a workload in a file, for support."),
    "replay": ("flotilla_cli.replay.verb", "Plan a recorded workload again, step by step."),
    "image": ("flotilla_cli.image.verbs", "Build the container image of all services, without Docker."),
}


class Verbs(click.Group):
    """The group of verbs; a verb exists if its module is installed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which people need them."""
        return [name for name, (module, _) in VERBS.items() if find_spec(module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = getattr(import_module(VERBS[cmd_name][0]), cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb. A file that cannot be read or written is reported in one line, without a traceback."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.filename is None:  # a broken pipe, for example: click ends quietly then
                raise
            raise click.ClickException(f"{error.filename}: {error.strerror}") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of --help without importing the verbs."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, VERBS[name][1]) for name in self.list_commands(ctx)])


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="flotilla-cli")
def main() -> None:
    """Flotilla: OpenKruise's workloads as small services around a NATS bus."""
    # Imported here, so that --help imports nothing heavy.
    import_module("flotilla_common.api.jsontext").read_as_deep_as_the_apiserver()
