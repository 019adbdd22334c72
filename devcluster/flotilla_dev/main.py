"""The `flotilla-dev` command: the commands of this package without those for operators."""

from importlib import import_module

import click

from flotilla_cli.main import Commands, Verb
from flotilla_cli.plugins import LOCAL_PACKAGE


class DevCommands(Commands):
    """The commands that this package brings."""

    def verbs(self) -> dict[str, Verb]:
        """Return the commands of this package."""
        return {name: verb for name, verb in super().verbs().items() if verb.package == LOCAL_PACKAGE}


@click.command(cls=DevCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name=LOCAL_PACKAGE)
def main() -> None:
    """Run a local cluster with Flotilla, and build its image."""
    import_module("flotilla_common.api.jsontext").read_as_deep_as_the_apiserver()
