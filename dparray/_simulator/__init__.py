"""Kernels in plain Python: ``dp.simulate`` runs every work-item on the host and checks it.

In: a kernel's function, a range and arguments. Out: changed arrays, or an error that names the item
and the line. Imports the kernel language and all rows below the tools; no device is needed.
"""
