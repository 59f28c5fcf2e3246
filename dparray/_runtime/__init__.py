"""Watch and order queues, pack arguments, and launch kernels.

`launch.py` is the only file that submits kernels from Python.
In: a built kernel, arguments, a range and a queue. Out: an event. Imports: rows up to ``runtime``.
"""
