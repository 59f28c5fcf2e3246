"""The kernel language: what a kernel may refer to and call, and what it means.

In: Python functions and the type keys of their arguments. Out: the kernel as a typed program
(:mod:`dparray._ir`), or a :class:`~dparray._language.errors.Refusal`, which names the line, the
part of it and the fix. Imports: rows up to ``language``, so no compiler and no device.

``promotion`` has the types of results, and ``values`` the values of names during translation.
Operations are in ``numbers`` and ``memory``, branches and loops in ``control``. Functions are in
``calls`` and ``builtins``. ``frontend`` has the statements and expressions of Python, ``checks``
the faults and ``advice`` the warnings.
"""
