"""``dp.placement``: which device computes which step, and what was decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dparray import _placement, config
from dparray._placement import Policy
from dparray._scheduling import executor as executor
from dparray._scheduling.places import PolicyStep
from dparray._scheduling.trace import PlacedExpression, records
from dparray.device import Device
from dparray.exceptions import ArgumentError

__all__ = ["PlacedExpression", "PlacementControl", "PolicyStep", "placement"]


class PlacementControl:
    """Policies of placement: called with one, a ``with`` block in which it is in force.

    Under ``"follow"``, the default, an operation runs where its inputs lie, and inputs on different
    queues are an error. Under ``"fastest"`` they are none. What is recorded in the block is
    computed when a value is asked for, as always; then each step (a kernel) goes to the device that
    finishes it first. What it costs there is estimated from measured rates of devices and of copies
    between them (``dparray info --speed``), copies that are needed are part of the plan, and the
    steps are assigned by list scheduling with insertion (HEFT: Topcuoglu, Hariri and Wu, 2002) and
    a bounded local search. One device is taken where several would not be faster by at least 5 %.

    A policy can be a function too: it is called with each :class:`PolicyStep`, in order, and gives
    the device.

    Element-wise operations, reductions, ``matmul`` and contractions of Tile are steps. A function
    is asked about each; ``"fastest"`` leaves small arrays of one CPU queue to NumPy. A policy is
    not asked about anything else while all operands are on one queue. Functions that
    make no expression (sorting, FFT, linear algebra except ``matmul``) and Tile functions run on
    one device: operands on several queues are copied to one of them, for which the policy is
    asked once. Kernels that users launch, indexing with an array and random generators follow
    their data under every policy.

    Args:
        policy: ``"follow"``, ``"fastest"``, or a function.
        devices: those that may be chosen, whatever :class:`dparray.Device` takes; if not given,
            those where the operands and results lie, and each further device of this machine.
        result: where results lie: ``"follow"``, on the device of the first input, or a device.

    Returns:
        A context manager.

    Raises:
        ArgumentError: there is no such policy.
        DeviceError: there is no such device.

    Example:
        >>> import dparray as dp
        >>> import dpctl
        >>> a = dp.asarray([1.0, 2.0], device=dpctl.SyclQueue("cpu"))
        >>> b = dp.asarray([3.0, 4.0], device=dpctl.SyclQueue("cpu"))
        >>> with dp.placement("fastest"):
        ...     total = (a + b).sum()
        >>> float(total), total.device == a.device
        (10.0, True)
        >>> dp.placement.trace()[-1].policy
        'fastest'
    """

    def __call__(
        self,
        policy: str | Callable[[PolicyStep], Any],
        *,
        devices: Sequence[Any] | None = None,
        result: Any = "follow",
    ) -> AbstractContextManager[None]:
        if not callable(policy) and policy not in config.WORDS["placement"]:
            raise ArgumentError(
                f"placement: {policy!r} is no policy; give 'follow', 'fastest', or a function of "
                "a step that gives a device"
            )
        if isinstance(devices, str) or (devices is not None and not isinstance(devices, Iterable)):
            raise ArgumentError(
                f"placement: devices={devices!r} is no list of devices: devices=[{devices!r}]"
            )
        queues = tuple([Device(each).sycl_queue for each in devices or ()])
        wish = None if isinstance(result, str) and result == "follow" else Device(result).sycl_queue
        return _placement.scoped(Policy(policy, queues, wish))

    @property
    def policy(self) -> str | Callable[[PolicyStep], Any]:
        """The policy in force in this thread or task."""
        found = _placement.policy_in_force()
        return "follow" if found is None else found.choose

    def trace(self) -> list[PlacedExpression]:
        """Return the last expressions that policies bound, at most 64, the latest at the end.

        Each has the steps with devices and alternatives, the copies with their bytes, estimates,
        and what was measured: on simulated devices, and of kernels in a :func:`dparray.profile`.

        Example:
            >>> import dparray as dp
            >>> isinstance(dp.placement.trace(), list)
            True
        """
        return [each.read() for each in list(records)]

    def forget(self) -> None:
        """Drop what :meth:`trace` gives.

        Example:
            >>> import dparray as dp
            >>> dp.placement.forget()
            >>> dp.placement.trace()
            []
        """
        records.clear()

    def __repr__(self) -> str:
        return f"<placement: {self.policy!r} is in force>"


placement = PlacementControl()
