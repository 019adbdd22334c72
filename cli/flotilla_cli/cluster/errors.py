"""The one exception of this package: something the user has to know, with what they can do about it."""

import click


class ClusterError(click.ClickException):
    """Setting up, checking or stopping the local cluster failed; the message says what to do next."""
