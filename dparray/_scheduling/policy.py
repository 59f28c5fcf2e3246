"""``dp.placement``: policies for placing steps on devices, and records of their decisions.

For the core, this module also provides the functions that carry out policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dparray import _placement, config
from dparray._placement import Policy
from dparray._scheduling import eager_operands, executor
from dparray._scheduling.places import PolicyStep
from dparray._scheduling.trace import PlacedExpression, records
from dparray.device import Device
from dparray.exceptions import ArgumentError

__all__ = ["PlacedExpression", "PlacementControl", "PolicyStep", "placement"]

# The core calls these: see `dparray._satellites`.
compute, bring, planned = executor.compute, executor.bring, executor.planned
called_together = eager_operands.called_together


class PlacementControl:
    """Placement policies; a call returns a ``with`` block in which a policy is active.

    Under ``"follow"``, the default, an operation runs where its inputs are stored, and inputs on
    different queues raise an error. Under ``"fastest"`` such inputs are allowed. Expressions in the
    block are evaluated when a value is needed, as always; then each step (a kernel) goes to the
    device that finishes it first. Costs are estimated from measured rates of devices and of copies
    between them (``dparray info --speed``). The required copies are part of the plan. The steps
    are assigned by list scheduling with insertion (HEFT: Topcuoglu, Hariri and Wu, 2002) and a
    bounded local search. A single device is used unless several are faster by at least 5 %.

    A policy can also be a function: it is called with each :class:`PolicyStep`, in order, and
    returns the device.

    Element-wise operations, reductions, ``matmul`` and Tile contractions are steps. A function is
    called for each; ``"fastest"`` leaves small arrays on one CPU queue to NumPy. While all operands
    are on one queue, a policy is not used for anything else. Eager functions (sorting, FFT, linear
    algebra except ``matmul``) and Tile functions run on one device: operands on several queues are
    copied to one of them, for which the policy is called once. User-launched kernels, indexing with
    an array and random generators follow their data under every policy.

    Args:
        policy: ``"follow"``, ``"fastest"``, or a function.
        devices: the candidates, whatever :class:`dparray.Device` accepts; by default those of the
            operands and results, and each other device of this machine.
        result: the placement of results: ``"follow"``, the device of the first input, or a device.

    Returns:
        A context manager.

    Raises:
        ArgumentError: the policy is unknown.
        DeviceError: the device is unknown.

    Example:
        >>> a = dp.asarray([1.0, 2.0], device=dp.Device("cpu").new_queue())
        >>> b = dp.asarray([3.0, 4.0], device=dp.Device("cpu").new_queue())
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
                f"placement: policy must be 'follow', 'fastest', or a function of a step "
                f"that returns a device; got {policy!r}"
            )
        if isinstance(devices, str) or (devices is not None and not isinstance(devices, Iterable)):
            raise ArgumentError(
                f"placement: devices= must be a list of devices: devices=[{devices!r}]"
            )
        queues = tuple([Device(device).queue for device in devices or ()])
        wish = None if isinstance(result, str) and result == "follow" else Device(result).queue
        return _placement.scoped(Policy(policy, queues, wish))

    @property
    def policy(self) -> str | Callable[[PolicyStep], Any]:
        """Return the active policy in this thread or task."""
        policy = _placement.policy_in_force()
        return "follow" if policy is None else policy.choose

    def trace(self) -> list[PlacedExpression]:
        """Return the last expressions that policies bound, at most 64, the latest last.

        Each record has the steps with devices and alternatives, the copies with their bytes,
        estimates, and measurements: on simulated devices, and of kernels in a
        :func:`dparray.profile`.

        Example:
            >>> isinstance(dp.placement.trace(), list)
            True
        """
        return [record.read() for record in list(records)]

    def forget(self) -> None:
        """Clear the records of :meth:`trace`.

        Example:
            >>> dp.placement.forget()
            >>> dp.placement.trace()
            []
        """
        records.clear()

    def __repr__(self) -> str:
        return f"<placement: {self.policy!r} is in force>"


placement = PlacementControl()
