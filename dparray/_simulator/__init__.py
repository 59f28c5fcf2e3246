"""Kernels on the host: ``dp.simulate`` runs every work-item in turn and checks its accesses.

In: a kernel's function, a range and arguments. Out: changed arrays, or an error that names the item
and the line. ``program`` interprets the program of a kernel, and counts the kernels that the front
end refuses. ``simulation`` runs those, and kernels under a debugger, by their Python functions.
Imports the kernel language and all rows below the tools; no device is needed.
"""
