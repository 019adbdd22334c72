"""The container image of all services, built without Docker from Debian's packages, the lock file and this checkout.

`build` combines the layers of `base` (Debian's Python, no shell) and `python_packages` (locked wheels, our packages);
each is cached until one of its inputs changes. `oci` writes the image, `sbom` lists its content. The Dockerfile runs
the same code.
"""
