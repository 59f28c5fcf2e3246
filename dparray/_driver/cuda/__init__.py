"""Drive NVIDIA GPUs through CUDA, by cuda-core and cuda-bindings.

cuda-core creates streams and events; launches, copies, allocations and modules go to NVIDIA's
driver by cuda-bindings. A stream orders its work, so a queue is one stream. `prepare.py` finds out
whether there is a driver, so this file imports nothing. In: calls of
:class:`dparray._driver.interface.Driver`, which `driver.py` collects. Out: devices of cuda-core,
and queues, events and memory of this folder. Imports: rows up to ``driver``, and ``cuda``.
"""
