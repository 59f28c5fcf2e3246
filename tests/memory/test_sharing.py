"""Memory shared with other libraries: reads see their writes as if nothing were ever deferred."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import dpctl
import dpctl.memory
import dpnp
import dpnp.tensor
import numpy as np
import pytest

import dparray as dp


@pytest.mark.parametrize("library", [dpnp, dpnp.tensor])
def test_a_library_writes_to_operands_of_a_pending_array(library: Any) -> None:
    theirs = library.ones(5)
    ours = dp.asarray(theirs)
    y = ours + 1
    theirs[...] = 5
    assert y.tolist() == [2.0] * 5
    assert ours.tolist() == [5.0] * 5


def test_writes_through_dlpack_are_seen_in_order() -> None:
    theirs = dpnp.tensor.ones(5)
    ours = dp.from_dlpack(theirs)
    y = ours + 1
    theirs[...] = 5
    assert y.tolist() == [2.0] * 5
    assert ours.tolist() == [5.0] * 5


def test_an_exported_array_is_never_deferred_on() -> None:
    ours = dp.ones(5)
    before = ours + 1
    theirs = dpnp.tensor.asarray(ours)
    after = ours + 1
    theirs[...] = 7
    assert before.tolist() == [2.0] * 5
    assert after.tolist() == [2.0] * 5
    assert ours.tolist() == [7.0] * 5


def test_an_interface_beyond_its_allocation_raises(queue: Any) -> None:
    memory = dpctl.memory.MemoryUSMShared(800, queue=queue)

    class Shown:
        def __init__(self, **changes: Any) -> None:
            self.__sycl_usm_array_interface__ = {
                "data": (memory._pointer, False),
                "shape": (100,),
                "strides": None,
                "typestr": "<f8",
                "version": 1,
                "syclobj": queue,
                **changes,
            }

    x = dp.asarray(Shown())
    x[:] = 1
    assert float(x.sum()) == 100
    assert dp.asarray(Shown(shape=(0,))).shape == (0,)
    for changes in (
        {"shape": (10**14,)},  # beyond all addresses; a nearer end may be in another allocation
        {"shape": (101,)},
        {"strides": (2,)},
        {"strides": (-1,)},
        {"offset": 1},
    ):
        with pytest.raises(dp.ArgumentError, match="no allocation"):
            dp.asarray(Shown(**changes))


@pytest.mark.parametrize("size", [3, 20_000])
def test_operators_take_both_kinds_of_arrays_in_any_order(size: int) -> None:
    ours, theirs = dp.ones(size) * 3, dpnp.full(size, 2.0)
    for found, wanted in (
        (theirs + ours, 5),
        (ours + theirs, 5),
        (theirs - ours, -1),
        (theirs**ours, 8),
        (theirs @ ours, 6 * size),
        (theirs < ours, True),
        (divmod(theirs, ours)[1], 2),
    ):
        assert isinstance(found, dp.ndarray)
        assert bool(dp.all(found == wanted))


@pytest.mark.parametrize("size", [3, 20_000])
def test_in_place_operators_keep_the_placement(size: int) -> None:
    theirs = dpnp.full(size, 2.0)
    view = theirs[::2]
    theirs += dp.arange(size) * 2
    assert isinstance(theirs, dpnp.ndarray)
    np.testing.assert_array_equal(view.asnumpy(), (2 + 2 * np.arange(size))[::2])
    ours = kept = dp.ones(size)
    ours *= theirs
    assert ours is kept
    np.testing.assert_array_equal(ours.asnumpy(), 2 + 2 * np.arange(size))


def test_it_is_the_same_for_a_dpnp_that_was_imported_before() -> None:
    code = "import dpnp, dparray as dp; print(dpnp.ones(3) + dp.ones(3), dp.ones(3) + dpnp.ones(3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split("]")[:2] == ["[2. 2. 2.", " [2. 2. 2."], done.stderr


class ReadOnly:
    """Memory of a library whose owner forbids writes."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    @property
    def __sycl_usm_array_interface__(self) -> dict[str, Any]:
        interface = dict(self.owner.__sycl_usm_array_interface__)
        interface["data"] = interface["data"][0], True
        return interface


@dp.kernel
def write_seven(item: Any, x: Any) -> None:
    x[item.get_id(0)] = 7


@dp.kernel
def add_seven(item: Any, x: Any) -> None:
    dp.AtomicRef(x, item.get_id(0)).fetch_add(7.0)


@dp.kernel
def read_one(item: Any, x: Any, out: Any) -> None:
    out[item.get_id(0)] = x[item.get_id(0)]


def _forbidden(kind: str) -> tuple[Any, Any]:
    """Return memory that must not be written: as its owner sees it, and as a kernel gets it."""
    if kind == "interface":
        ours = dp.ones(4)
        dp.eval(ours)
        return ours, ReadOnly(ours)
    theirs = dpnp.tensor.ones(4)
    theirs.flags["W"] = False
    return theirs, theirs if kind == "tensor" else dpnp.asarray(theirs, copy=False)


@pytest.mark.parametrize("kind", ["interface", "tensor", "dpnp"])
def test_kernels_do_not_write_memory_whose_owner_forbids_it(kind: str) -> None:
    owner, given = _forbidden(kind)
    out = dp.zeros(4, sycl_queue=owner.sycl_queue)
    read_one[dp.Range(4)](given, out)
    assert out.tolist() == [1.0] * 4
    for kernel in (write_seven, add_seven):
        with pytest.raises(dp.KernelCompileError, match="its owner forbids writes"):
            kernel[dp.Range(4)](given)
    dp.synchronize(out)
    assert dp.asarray(owner).tolist() == [1.0] * 4


_SCALED = """
/* kernel void scaled(global const int *x) { } */
kernel void scaled(global double *x, global const double *y, global double const *z,
                   global double *const w, double factor) {
    x[get_global_id(0)] = y[get_global_id(0)] * factor + z[get_global_id(0)];
}
"""


@pytest.mark.parametrize("kind", ["interface", "tensor", "dpnp"])
def test_raw_kernels_do_not_write_memory_whose_owner_forbids_it(kind: str) -> None:
    owner, given = _forbidden(kind)
    ours = dp.zeros(4, sycl_queue=owner.sycl_queue)
    kernel = dp.raw_kernel(_SCALED, "scaled")
    kernel[dp.Range(4)](ours, given, given, ours, 2.0)
    assert ours.tolist() == [3.0] * 4
    for arguments in ((given, ours, ours, ours), (ours, ours, ours, given)):
        with pytest.raises(dp.KernelArgumentError, match="or pass a copy"):
            kernel[dp.Range(4)](*arguments, 2.0)
    kernel[dp.Range(4)](dp.asarray(given).copy(), ours, ours, ours, 2.0)
    dp.synchronize(ours)
    assert dp.asarray(owner).tolist() == [1.0] * 4


def _element(x: Any) -> Any:
    for i in range(x.shape[0]):
        x[i] = 7.0


def _statement(x: Any) -> Any:
    x[:] = 7.0


def _part_in_place(x: Any) -> Any:
    y = x[1:]
    y += 7.0


def _turned(x: Any) -> Any:
    x[::-1][0] = 7.0


def _parallel(x: Any) -> Any:
    for i in dp.prange(x.shape[0]):
        x[i] = 7.0


def _total(x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total + (x * 2).sum() + x[1:].sum()


@pytest.mark.parametrize("kind", ["interface", "tensor", "dpnp"])
@pytest.mark.parametrize("write", [_element, _statement, _part_in_place, _turned, _parallel])
def test_compiled_functions_do_not_write_memory_whose_owner_forbids_it(
    kind: str, write: Any
) -> None:
    owner, given = _forbidden(kind)
    assert dp.jit(_total)(given) == 4 + 8 + 3
    with pytest.raises((dp.KernelCompileError, dp.ArgumentError), match="owner"):
        dp.jit(write)(given)
    dp.synchronize()
    assert dp.asarray(owner).tolist() == [1.0] * 4
    with pytest.raises(
        (dp.KernelCompileError, dp.ArgumentError), match=r"shows elements|repeats elements"
    ):
        dp.jit(write)(dp.broadcast_to(dp.ones(1), (4,)))
    # The same function writes memory where writes are allowed.
    ours = dp.ones(4)
    dp.jit(write)(ours)
    assert 7.0 in ours.tolist() or 8.0 in ours.tolist()
