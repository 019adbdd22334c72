"""The objects of an installation (`manifests`, `rbac`), their installation, and their removal."""
