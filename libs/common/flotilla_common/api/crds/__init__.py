"""The CustomResourceDefinitions, written as Python data: one module per kind, all of the same shape.

Where the versions of a kind differ, conversion is by webhook from the first moment. With strategy None the apiserver
would take a v1alpha1 object, drop what v1beta1 does not know, and say nothing; with a webhook that is not there yet, it
refuses.
"""

from flotilla_common.api.crds.schema import Schema
from flotilla_common.api.kinds.cloneset import crd as cloneset
from flotilla_common.api.kinds.containerrecreaterequest import crd as containerrecreaterequest
from flotilla_common.api.kinds.imagelistpulljob import crd as imagelistpulljob
from flotilla_common.api.kinds.imagepulljob import crd as imagepulljob
from flotilla_common.api.kinds.nodeimage import crd as nodeimage

_KINDS = (cloneset, containerrecreaterequest, imagelistpulljob, imagepulljob, nodeimage)


def manifests() -> list[Schema]:
    """All definitions, by name."""
    return [kind.manifest() for kind in _KINDS]
