"""Contracts that the fakes of the simulation share with the real servers."""
