"""Kernels of users: decorators, binding of arguments, launches and their events.

In: a Python function, a range and arguments. Out: an event. Imports arrays and everything below.
"""
