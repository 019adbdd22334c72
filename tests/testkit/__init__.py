"""Builders and fakes that tests of all layers share; README.md says what is where."""
