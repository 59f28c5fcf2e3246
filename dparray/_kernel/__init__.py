"""User-defined kernels: decorators, argument binding, launches and their events.

Input: a Python function, a range and arguments. Output: an event. Imports arrays and all lower
    layers.
"""
