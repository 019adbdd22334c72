"""The canonical typed form of a pod template (common.md §7.2)."""

import msgspec

from flotilla_common.api.documents import Json


def canonical_template(template: bytes | msgspec.Raw) -> Json:
    """The template as core/v1 types would write it: what revisions hold and hash. Raises ValueError for no template."""
    raise NotImplementedError
