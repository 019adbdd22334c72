"""Support bundles: what the bus says about one object, in one file (`records`), without secrets (`redact`)."""
