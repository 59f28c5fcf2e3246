"""Kernels on the host: ``dp.simulate`` runs every work-item in turn and checks its accesses.

``program`` interprets the program of a kernel, and counts the kernels that the front end rejects.
``simulation`` runs those, and kernels under a debugger, by their Python functions. In: a kernel's
function, a range and arguments. Out: changed arrays, or an error that names the item and the line.
Imports: rows up to ``functions``; no device is needed.
"""
