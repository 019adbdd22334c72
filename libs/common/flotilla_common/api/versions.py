"""The versions that the kinds of apps.kruise.io are written in; v1beta1 is the hub of every conversion."""

V1ALPHA1 = "apps.kruise.io/v1alpha1"
V1BETA1 = "apps.kruise.io/v1beta1"
