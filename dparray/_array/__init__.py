"""The array: its state, its operators, and ``apply``, the entry point of every operation.

Input: calls of the user. Output: arrays, pending or computed. All errors in user input are raised
here, at the call. Imports evaluation and all lower layers.
"""
