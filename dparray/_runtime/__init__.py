"""The SYCL runtime: drivers are found, queues ordered and watched, kernels submitted.

In: a built kernel, packed arguments, a range and a queue. Out: an event. Imports the ground files
and dpctl; this is the only folder that submits work.
"""
