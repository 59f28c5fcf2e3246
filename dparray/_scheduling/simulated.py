"""Simulated devices: arrays and steps are a CPU's, times and limits those of another machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from dparray._runtime import queues
from dparray._scheduling import device_costs, places, virtual
from dparray._scheduling.device_costs import Declared, Speeds
from dparray._scheduling.problem import Link
from dparray.device import Device
from dparray.exceptions import ArgumentError

_ASPECTS = frozenset({"fp64", "fp16"})


class SimulatedDevice:
    """A device that this machine does not have, for tests of programs and policies.

    It computes on the CPU device, on a queue of its own, so all values are right; what steps and
    copies take is taken from what is said here, in virtual time. A policy sees its speeds, memory
    and aspects as those of a device, so the schedule is the one that such a machine would get.
    Virtual time and the limit of memory hold for steps that a policy places. Other work takes no
    virtual time, and its arrays are the CPU's: small ones are host arrays that no pool counts.

    Args:
        name: by which it is called in records and messages.
        speeds: how many times as fast as a processor of two cores it is, or a dict of rates in a
            second: ``memory`` and ``reduction`` in bytes, ``single`` and ``double`` in additions,
            ``single_function`` and ``double_function`` in additions that exponentials and the like
            are counted as, ``single_product`` and ``double_product`` in multiplications; and
            ``launch`` in seconds.
            Those that are not given are of the processor.
        bandwidths: of copies to and from all other places, in bytes per second, or a dict by the
            name of the other device, with ``"host"`` for all that are not in it.
        memory: its bytes.
        aspects: those of ``"fp64"`` and ``"fp16"`` that it has. Without one, arrays of its dtypes
            are refused there, as on a real device, and floats are ``float32`` if nothing is said.
        latency: seconds that any copy takes.
        link: a name; copies to and from devices of one link follow each other. Without one, each
            pair of devices has its own.

    Attributes:
        name: its name.
        slowdown: how many times as long as its speeds say steps take in fact, 1.0 at first: what
            is measured then differs from the estimate.

    Raises:
        ArgumentError: there is no such rate or aspect, or a number is not positive.

    Example:
        >>> import dparray as dp
        >>> cpu = dp.testing.SimulatedDevice("cpu", speeds=1.0)
        >>> gpu = dp.testing.SimulatedDevice("gpu", speeds=20.0, bandwidths=12e9)
        >>> x = dp.ones((1000, 1000), dtype="float32", device=cpu)
        >>> with dp.placement("fastest", devices=[cpu, gpu]):
        ...     y = dp.exp(x @ x).sum()
        >>> bool(dp.isfinite(y)), gpu.busy_until > 0
        (False, True)
    """

    def __init__(
        self,
        name: str,
        speeds: float | Mapping[str, float] = 1.0,
        bandwidths: float | Mapping[str, float] = 10e9,
        memory: float = inf,
        aspects: Iterable[str] = ("fp64", "fp16"),
        *,
        latency: float = 10e-6,
        link: str | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"SimulatedDevice: name is a text; got {name!r}")
        self.name = name
        self.slowdown = 1.0
        self._speeds = _checked_speeds(name, speeds)
        self._bandwidths = bandwidths if isinstance(bandwidths, Mapping) else {"host": bandwidths}
        numbers = {
            "memory": memory,
            **{f"bandwidths[{k!r}]": v for k, v in self._bandwidths.items()},
        }
        for what, number in numbers.items():
            if not (isinstance(number, int | float) and number > 0):
                raise ArgumentError(
                    f"SimulatedDevice {name!r}: {what} is a positive number; got {number!r}"
                )
        found = frozenset(aspects)
        if not found <= _ASPECTS:
            raise ArgumentError(
                f"SimulatedDevice {name!r}: {', '.join(sorted(found - _ASPECTS))} is no aspect; "
                f"there are {', '.join(sorted(_ASPECTS))}"
            )
        if "fp64" not in found:
            self._speeds = self._speeds._replace(
                double=0.0, double_function=0.0, double_product=0.0
            )
        self._latency = latency
        self._link = link
        self._steps_left = inf
        real = Device("cpu").sycl_queue
        lacking = sorted(_ASPECTS - found)
        self.sycl_queue = queues.beside(real)
        if lacking:
            called = f"the simulated device {name!r}"
            self.sycl_queue = queues.without_aspects(real, called, lacking)
        device_costs.declared[self.sycl_queue] = Declared(
            name,
            self._speeds,
            float(memory),
            found,
            self._link_to,
            lambda: self._steps_left > 0,
            lambda: self.slowdown,
            self._note_step,
            self,
        )

    @property
    def busy_until(self) -> float:
        """The virtual time, in seconds, until which it has had work."""
        return virtual.busy.get(self.sycl_queue, 0.0)

    def vanish(self, after: int = 0) -> None:
        """Take the device away, as a driver that resets it: what lies on it is lost.

        Args:
            after: how many further steps it computes before.

        Example:
            >>> import dparray as dp
            >>> dp.testing.SimulatedDevice("gpu").vanish()
        """
        self._steps_left = after

    def _note_step(self) -> None:
        if self._steps_left:
            self._steps_left -= 1

    def _link_to(self, source: Any, target: Any) -> Link:
        other = places.name_of(target)
        said = device_costs.declared.get(target)
        link: Any = self._link or frozenset((source, target))
        bandwidth = self._bandwidths.get(other, self._bandwidths.get("host", 10e9))
        if said is not None and isinstance(owner := said.owner, SimulatedDevice):
            theirs = owner._bandwidths.get(self.name, owner._bandwidths.get("host", 10e9))
            bandwidth = min(bandwidth, theirs)
            link = self._link or owner._link or link
        return Link(self._latency, bandwidth, device_costs.channel_of(link))

    def __repr__(self) -> str:
        return f"SimulatedDevice({self.name!r})"


def _checked_speeds(name: str, speeds: float | Mapping[str, float]) -> Speeds:
    if not isinstance(speeds, Mapping):
        if not (isinstance(speeds, int | float) and speeds > 0):
            raise ArgumentError(
                f"SimulatedDevice {name!r}: speeds is a positive number, or one for each rate; got "
                f"{speeds!r}"
            )
        return Speeds().times(speeds)
    unknown = sorted(set(speeds) - set(Speeds._fields))
    if unknown:
        raise ArgumentError(
            f"SimulatedDevice {name!r}: {', '.join(unknown)} is no rate; there are "
            f"{', '.join(Speeds._fields)}"
        )
    for rate, number in speeds.items():
        if not (isinstance(number, int | float) and number > 0):
            raise ArgumentError(
                f"SimulatedDevice {name!r}: {rate} is a positive number; got {number!r}"
            )
    usual = Speeds()
    made = usual._replace(**{rate: float(number) for rate, number in speeds.items()})
    for rate in ("single", "double"):
        if f"{rate}_function" not in speeds:  # as fast beside additions as they are usually
            share = getattr(made, rate) / getattr(usual, rate)
            function = getattr(usual, f"{rate}_function") * share
            made = made._replace(**{f"{rate}_function": function})
    return made
