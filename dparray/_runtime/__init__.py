"""Watch and order queues, pack arguments, and launch kernels.

Input: a built kernel, arguments, a range and a queue. Output: an event. Imports the ground modules
and the interface of the drivers. `launch.py` is the only file that submits kernels from Python.
"""
