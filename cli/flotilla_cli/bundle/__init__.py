"""Support bundles: the records of the bus about one object, in one file (`records`), without secrets."""
