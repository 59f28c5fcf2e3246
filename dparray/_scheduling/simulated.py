"""Simulated devices: they compute on the CPU, with the times and limits of another machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import Any

from dparray._driver import declared, traits_of
from dparray._runtime import queues
from dparray._scheduling import device_costs, places, virtual
from dparray._scheduling.device_costs import Speeds
from dparray._scheduling.problem import Link
from dparray.device import Device
from dparray.exceptions import ArgumentError

_ASPECTS = frozenset({"fp64", "fp16"})


class SimulatedDevice:
    """A simulated device, to test programs and policies without the hardware.

    It computes on the CPU device, on its own queue, so all values are correct; the durations of
    steps and copies follow the arguments, in virtual time. A policy sees its speeds, memory and
    aspects as those of a device, so the schedule is that of such a machine. Virtual time and the
    memory limit apply to steps that a policy places. Other work takes no virtual time, and its
    arrays are ordinary CPU arrays: small ones are host arrays that no pool counts.

    Args:
        name: its name in records and messages.
        speeds: the speedup over a processor of two cores, or a dict of rates per second: ``memory``
            and ``reduction`` in bytes, ``single`` and ``double`` in additions, ``single_function``
            and ``double_function`` in the additions that functions such as exponentials count as,
            ``single_product`` and ``double_product`` in multiplications; and ``launch`` in seconds.
            The defaults are those of the processor.
        bandwidths: the bandwidth of copies to and from all other places, in bytes per second, or a
            dict by the name of the other device, with ``"host"`` for all others.
        memory: the size of its memory in bytes.
        aspects: its aspects among ``"fp64"`` and ``"fp16"``. Without an aspect, arrays of its
            dtypes raise an error there, as on a real device, and the default float is ``float32``.
        latency: the fixed seconds per copy.
        link: a name; copies to and from devices with the same link run one after another. Without a
            link, each pair of devices has its own.

    Attributes:
        name: its name.
        slowdown: the factor by which steps take longer than its speeds imply, 1.0 at first; the
            measurements then differ from the estimate.

    Raises:
        ArgumentError: a rate or aspect is unknown, or a number is not positive.

    Example:
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
            raise ArgumentError(f"SimulatedDevice: name must be a string; got {name!r}")
        self.name = name
        self.slowdown = 1.0
        self._speeds = _checked_speeds(name, speeds)
        self._bandwidths = bandwidths if isinstance(bandwidths, Mapping) else {"host": bandwidths}
        numbers = {
            "memory": memory,
            **{f"bandwidths[{k!r}]": v for k, v in self._bandwidths.items()},
        }
        for what, number in numbers.items():
            _check_positive(name, what, number)
        known = frozenset(aspects)
        if not known <= _ASPECTS:
            raise ArgumentError(
                f"SimulatedDevice {name!r}: unknown aspect {', '.join(sorted(known - _ASPECTS))}; "
                f"expected {', '.join(sorted(_ASPECTS))}"
            )
        if "fp64" not in known:
            self._speeds = self._speeds._replace(
                double=0.0, double_function=0.0, double_product=0.0
            )
        self._latency = latency
        self._link = link
        self._steps_left = inf
        real = Device("cpu").queue
        self.queue = queues.sibling_queue(real)
        traits = traits_of(real)
        declared[self.queue] = replace(
            traits,
            name=f"the simulated device {name!r}",
            aspects=traits.aspects - (_ASPECTS - known),
        )
        self._memory, self._aspects = float(memory), known
        device_costs.declared[self.queue] = self

    @property
    def busy_until(self) -> float:
        """The virtual time, in seconds, until which it has been busy."""
        return virtual.busy.get(self.queue, 0.0)

    def vanish(self, after: int = 0) -> None:
        """Remove the device, as a driver reset does: the data on it is lost.

        Args:
            after: the number of steps that it computes before.

        Example:
            >>> dp.testing.SimulatedDevice("gpu").vanish()
        """
        self._steps_left = after

    def _note_step(self) -> None:
        if self._steps_left:
            self._steps_left -= 1

    def _link_to(self, source: Any, target: Any) -> Link:
        other = places.name_of(target)
        device = device_costs.declared.get(target)
        link: Any = self._link or frozenset((source, target))
        bandwidth = self._bandwidths.get(other, self._bandwidths.get("host", 10e9))
        if device is not None:
            theirs = device._bandwidths.get(self.name, device._bandwidths.get("host", 10e9))
            bandwidth = min(bandwidth, theirs)
            link = self._link or device._link or link
        return Link(self._latency, bandwidth, device_costs.channel_of(link))

    def __repr__(self) -> str:
        return f"SimulatedDevice({self.name!r})"


def _check_positive(name: str, what: str, number: Any, otherwise: str = "") -> None:
    if not (isinstance(number, int | float) and number > 0):
        raise ArgumentError(
            f"SimulatedDevice {name!r}: {what} must be a positive number{otherwise}; got {number!r}"
        )


def _checked_speeds(name: str, speeds: float | Mapping[str, float]) -> Speeds:
    if not isinstance(speeds, Mapping):
        _check_positive(name, "speeds", speeds, ", or one per rate")
        return Speeds().times(speeds)
    unknown = sorted(set(speeds) - set(Speeds._fields))
    if unknown:
        raise ArgumentError(
            f"SimulatedDevice {name!r}: unknown rate {', '.join(unknown)}; expected "
            f"{', '.join(Speeds._fields)}"
        )
    for rate, number in speeds.items():
        _check_positive(name, rate, number)
    usual = Speeds()
    checked = usual._replace(**{rate: float(number) for rate, number in speeds.items()})
    for rate in ("single", "double"):
        if f"{rate}_function" not in speeds:  # with the usual ratio to additions
            share = getattr(checked, rate) / getattr(usual, rate)
            function = getattr(usual, f"{rate}_function") * share
            checked = checked._replace(**{f"{rate}_function": function})
    return checked
