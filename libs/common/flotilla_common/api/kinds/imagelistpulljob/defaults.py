"""Defaults of an ImageListPullJob (imagepull.md §3.1)."""

import copy

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.imagepulljob.defaults import default_pull_template


def default_list_job(document: Json) -> Json:
    """The list, as a new document. Its jobs get their imagePullPolicy by their own admission."""
    defaulted = copy.deepcopy(document)
    default_pull_template(defaulted)
    return defaulted
