"""The array: its state, its operators, and ``apply``, the entry point of every operation.

All errors in user input are raised here, at the call.
In: calls of the user. Out: arrays, pending or computed. Imports: rows up to ``evaluate``.
"""
