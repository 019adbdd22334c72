"""The container image of all services, built without Docker: its layers are made from Debian's packages, from the lock
file, and from this checkout.

`build` puts together what `base` (Debian's Python, no shell), `dependencies` (locked wheels) and `own` (our packages)
make; each layer is kept in the cache until something it is made of changes. `oci` writes the image down, `sbom` lists
what is in it. The Dockerfile runs the same code.
"""
