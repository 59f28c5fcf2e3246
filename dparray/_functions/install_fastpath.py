"""Connect the Python implementation to the compiled fast path, `dparray/_array/_fastpath.c`.

A call of an operator then takes 0.1 us more than in NumPy. The module calls the Python functions
for every case that it does not handle. They handle all cases with ``DPARRAY_COMPILED=0``, and if
the module was not built for want of a C compiler (see :mod:`dparray._array.build_fastpath`). A
Python without the global interpreter lock, which the module requires, uses them as well.
``DPARRAY_COMPILED`` may also be the path of the module.
"""

from __future__ import annotations

import contextvars
import ctypes
from typing import Any

import numpy as np

from dparray import _hooks, _log, _placement, config
from dparray._array import allocation, apply, assignment, fastpath, host_fastpath, subscript
from dparray._array.apply import NUMBERS, OPERATIONS, general_operation
from dparray._array.ndarray import host_view, materialize, ndarray
from dparray._codegen.canonical import Canonical
from dparray._driver import module_of, traits_of, when_loaded
from dparray._driver.marks import lock as order_lock
from dparray._evaluate import (
    bound_plan,
    evaluate,
    host,
    host_operations,
    implementations,
    limits,
    writes,
)
from dparray._functions import products, protocols
from dparray._graph.node import Node, Scalar, pending_order
from dparray._graph.ops import COMPARISONS, OPERATORS, OPS, SINGLE_OPERATORS, Op
from dparray._layout import Layout
from dparray._runtime import host_maps, launch, queues
from dparray.memory import pool
from dparray.memory.segments import Block, Segment

is_installed = False


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def install(module: Any) -> None:
    """Let arrays inherit the slots of the module, which call the current Python methods."""
    global is_installed
    context = contextvars.copy_context()
    context.run(np.seterr, all="ignore")
    of_class = ndarray.__dict__
    named = {
        "ndarray": ndarray,
        "working": queues.working,
        "at_once": limits.at_once,
        "scalar_types": set(host_fastpath.SCALARS),
        "context": context,
        "enter_context": _address(ctypes.pythonapi.PyContext_Enter),
        "exit_context": _address(ctypes.pythonapi.PyContext_Exit),
        "traced_call": host.call,
        "array_ufunc": protocols.array_ufunc,
        "numpy_matmul": np.matmul,
        "square_cost": OPS["square"].cost,
        "heap_elements": host_fastpath.HEAP_ELEMENTS,
        "allocate": pool.allocate,
        "one_core_products": products.ONE_CORE_PRODUCTS,
        "small_product": products._small_product,
        "host_view": host_view,
        "element": subscript._element,
        "assign": assignment.assign,
        "is_ready": lambda block, writes: host.is_ready(block, writes),
        "materialize": materialize,
        "Node": Node,
        "Scalar": Scalar,
        "Canonical": Canonical,
        "pending_order": pending_order,
        "Layout": Layout,
        "square": OPS["square"],
        "placement": vars(_placement),
        "holds": host_maps.holds,
        "options": vars(config),
        "operations": list(NUMBERS),
        "block": _sample_block(),
        "Segment": Segment,
        "others_work": queues.OTHERS_WORK,
        "usual_dtypes": allocation.USUAL_DTYPES,
        "usual_queue": allocation.usual_queue,
        "note_recent": _hooks.recent.append,
        "lock_order": order_lock.acquire,
        "unlock_order": order_lock.release,
        "is_whole_device": lambda queue: not traits_of(queue).is_part,
    }
    in_slots = ["getitem", "setitem", "matmul", "float", "int", "index", "bool", "pow"]
    in_slots += ["rmatmul", "rpow"]
    for name in in_slots:
        named[name] = of_class[f"__{name}__"]
    for name in ("shape", "ndim", "size", "dtype", "T"):
        named[name] = of_class[name].fget
    of_operators = dict(zip(NUMBERS, (*OPERATORS, *COMPARISONS, *SINGLE_OPERATORS), strict=False))
    operations, numbers = [], {}
    for op, number in NUMBERS.items():
        name = of_operators.get(op, "")
        general_in_place = of_class.get(f"__i{name}__")
        if name:
            in_slots += [name, f"r{name}", f"i{name}"] if name in OPERATORS else [name]
        operations.append(
            (
                host.eager_function(op),
                host.in_place(op),
                op.cost,
                general_operation(op),
                general_in_place,
                _kept_types(op),
            )
        )
        if op.arity == 2 and protocols.OPERATIONS_OF_UFUNCS.get(op.ufunc) is OPERATIONS[op]:
            numbers[op.ufunc] = number
    methods = module.setup(named, operations, numbers)

    def take(driver: Any) -> None:
        if functions := driver.for_c():
            module.take_driver(*functions)

    when_loaded(take)
    module_of("host", "threads").use_pool(module.share_units)
    for name in ("shape", "ndim", "size", "dtype", "T"):
        slow = of_class[name]
        setattr(ndarray, name, property(getattr(module, name), slow.fset, None, slow.__doc__))
    for name in in_slots:
        if f"__{name}__" in of_class:
            delattr(ndarray, f"__{name}__")
    products._small_product = module.small_product
    ndarray.__array_ufunc__ = methods["__array_ufunc__"]

    def follow() -> None:
        """Set the options that the module reads at every call."""
        # There is no such attribute while blocks of several threads differ.
        is_on = vars(config).get("host_tier", False)
        is_on &= not (_placement.functions_in_force or implementations.are_for_cpu)
        module.follow(is_on, limits.host_elements, limits.folded_elements, _hooks.is_tracing)

    vars(evaluate).update(Canonical=module.Canonical, pending_order=module.pending_order)
    vars(writes).update(pending_order=module.pending_order)
    apply.make_lazy_fold = module.lazy_fold
    bound_plan.make_launch = module.known_launch
    bound_plan.launch_bound = module.launch_known
    launch.make_known, launch.launch_packed = module.known_launch, module.launch_packed
    host_operations.copy_rows = module.copy_rows
    follow()
    _hooks.when_set("host_tier", follow)
    _hooks.when_set("cost_model", follow)
    _hooks.when_set("executor", follow)
    _hooks.when_set("tracing", follow)
    _hooks.when_set("functions_in_force", follow)
    _hooks.when_set("implementations", follow)
    is_installed = True


def _kept_types(op: Op) -> str:
    """Return the type characters of floats for which operands and result share a dtype."""
    if op.strength_reduced:
        return ""
    return "".join(each for each in "dfD" if each * op.arity + "->" + each in op.ufunc.types)


def _sample_block() -> Any:
    """Return a block with distinct slot values, from which the module learns the slot offsets."""
    sample: Any = Block.__new__(Block)
    sample.pointer, sample.segment, sample.readers = [], [], []
    return sample


def install_if_built() -> None:
    """Install the module if the package has it; otherwise print a notice if it should."""
    if fastpath.module is not None:
        install(fastpath.module)
    elif fastpath.missing_reason and config.notices:
        _log.notice(
            "operations on small arrays are 10 to 30 times slower than they could be, because the "
            f"installation has no compiled fast path; {fastpath.BUILD} "
            "(dp.config.notices = False: no such line)"
        )
