"""The array: its state, its operators, and ``apply``, the way every operation takes.

In: what users wrote. Out: arrays, pending or computed. All errors of users are raised here, at the
call. Imports the evaluation and everything below.
"""
