"""What an installation consists of (`manifests`, `rbac`), and how it comes onto a cluster and off it again."""
