"""The kernel language: what a kernel may refer to and call, and what it means.

Input: Python functions and the type keys of their arguments. Output: their source and the values
that they refer to, and the kernel as a typed program (:mod:`dparray._ir`), or a
:class:`~dparray._language.errors.Refusal` that names the line, the part of it and the fix. Imports
the kernel API, the device code and the intermediate representation, but no compiler and no device.

``promotion`` has the types of results, ``values`` what a name stands for during translation,
``numbers`` and ``memory`` the operations, ``control`` branches and loops, ``calls`` and
``builtins`` the functions, ``frontend`` the statements and expressions of Python, ``checks`` and
``advice`` faults and warnings.
"""
