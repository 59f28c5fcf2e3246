"""The driver of the host processor: kernels become native code, without another package.

Modules are LLVM IR in which each work-item is a call (`dparray/_compiler/back_ends/host/`). For
each size of group, ``program`` turns a module into loops over work-items, LLVM vectorizes them, and
``modules`` loads the object code. ``queues`` runs the work of a queue on a thread. In: calls of
:class:`dparray._driver.interface.Driver`. Out: objects of this folder. Imports: rows up to
``driver``, and ``llvmlite``.
"""
