"""The CustomResourceDefinitions, made from the kinds.

Where the versions of a kind differ, conversion is by webhook from the first moment. With strategy None the apiserver
would take a v1alpha1 object, drop what v1beta1 does not know, and say nothing; with a webhook that is not there yet, it
refuses.
"""

from flotilla_common.api.crds.definition import definition
from flotilla_common.api.crds.schema import Schema
from flotilla_common.api.kinds import catalogue


def manifests() -> list[Schema]:
    """All definitions, by name."""
    return [definition(kind) for kind in catalogue.KINDS]
