"""Find SYCL drivers, order and watch queues, and submit kernels.

Input: a built kernel, packed arguments, a range and a queue. Output: an event. Imports the ground
modules and dpctl. This is the only folder that submits work.
"""
