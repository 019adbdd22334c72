"""The error of local clusters."""

import click


class ClusterError(click.ClickException):
    """A failure to set up, check or stop a local cluster; the message says what to do next."""
