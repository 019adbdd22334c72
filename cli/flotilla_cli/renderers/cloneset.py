"""CloneSet: the tree of its revisions and pods."""

from flotilla_cli.picture import Opener
from flotilla_cli.tree.live import LiveTree

picture: Opener = LiveTree
