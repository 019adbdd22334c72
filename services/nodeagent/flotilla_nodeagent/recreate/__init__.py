"""Carries out ContainerRecreateRequests on their node (containerrecreaterequest.md §7)."""
