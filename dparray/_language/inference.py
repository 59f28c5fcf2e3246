"""Find the types of a kernel's variables as the compiler infers them, for the simulator.

The simulator runs a kernel in plain Python, where a variable has the type of its last value; in a
kernel it has one type for all values. So the kernel and its callees are typed as for a device, in
copies in which the relevant places are calls of :func:`site`.

A *kind* is the name of a dtype, ``("literal", number)``, ``("tuple", kinds)``, ``("array", dtype,
ndim)``, or ``None`` for anything else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: The name with which a copy calls :func:`site`.
SITE = "dparray_site"


class Inferred(NamedTuple):
    """The types of a function for the types of its arguments.

    Attributes:
        arguments: the kinds of the arguments.
        sites: the kinds of the sites.
        result: the kind of its result.
    """

    arguments: tuple[Any, ...]
    sites: dict[int, Any]
    result: Any


def site(number: int, value: Any) -> Any:
    """Return ``value``, whose type is recorded under ``number``. Only in code for the compiler."""
    raise NotImplementedError("site is typed, and does not run")
