"""Admission of pods: the chain of steps on new pods, the checks before pods go, and the steps of one module each.

Steps with packages of their own are in `budgets` and `spreading`; `chain.py` lists all of them in order.
"""
