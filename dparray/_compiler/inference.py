"""The types that the compiler gives to the variables of a kernel, for the simulator.

The simulator runs a kernel in plain Python, where a variable has the type of the value that was
assigned last; in a kernel it has one type for all of them. So the kernel and the functions that it
calls are typed as for a device, in copies in which places that matter are calls of :func:`site`.

A *kind* is the name of a dtype, ``("literal", number)``, ``("tuple", kinds)``,
``("array", dtype, ndim)``, or ``None`` of what is none of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: The name by which a copy calls :func:`site`.
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
    """``value``, whose type is recorded under ``number``. Only in what the compiler types."""
    raise NotImplementedError("site is typed, and does not run")
