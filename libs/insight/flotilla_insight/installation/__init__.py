"""The objects of an installation, as `flotilla install` and the chart apply them."""
