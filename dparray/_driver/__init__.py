"""Find the driver of a queue, and the traits of its device.

Only this module imports a driver's folder, by name, at its first use. In: queues. Out: a driver
(:class:`dparray._driver.interface.Driver`) or traits. Imports: rows up to ``ground``, and in the
folders of drivers ``dpctl``, ``cuda`` or ``llvmlite``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, cast

from dparray._driver.interface import Driver, DriverDevice, Queue, Traits


def prepare() -> None:
    """Set what a driver's packages read when they are imported, without importing them."""
    module_of("sycl", "prepare").prepare()


def module_of(driver: str, name: str) -> Any:
    """Return a module of a driver's folder, for the commands that diagnose an installation."""
    return import_module(f"dparray._driver.{driver}.{name}")


def processor() -> Any:
    """Return the module that makes machine code of functions for the processor itself."""
    return module_of("host", "processor")


#: The drivers of the package; the one with the default device comes first.
NAMES = ("sycl", "cuda", "host")

#: The drivers that have CPU devices.
_OF_CPUS = ("sycl", "host")

#: Additional drivers, such as the stand-in of a test.
others: list[Driver] = []


class Missing(NamedTuple):
    """A driver that this installation does not have.

    Attributes:
        name: the driver's name.
        reason: the part that is not installed, or the error of its import.
        fix: the line that adds it.
        is_damaged: whether it is installed and cannot be imported.
    """

    name: str
    reason: str
    fix: str
    is_damaged: bool = False


_found: dict[str, Driver | Missing] = {}
_lock = threading.RLock()
_when_loaded: list[Callable[[Driver], None]] = []


def driver_named(name: str) -> Driver | Missing:
    """Return a driver, imported at the first call, or the reason why it is missing."""
    with _lock:
        driver = _found.get(name)
        if driver is None:
            driver = _found[name] = _import(name)
            if not isinstance(driver, Missing):
                for action in _when_loaded:
                    action(driver)
        return driver


def _import(name: str) -> Driver | Missing:
    prepare = module_of(name, "prepare")
    try:
        absence = prepare.absence()
        return Missing(name, *absence) if absence else cast(Driver, module_of(name, "driver"))
    except Exception as error:  # A damaged installation may raise anything.
        reason = f"{prepare.PACKAGE} cannot be imported: {type(error).__name__}: {error}"
        return Missing(name, reason, f"`dparray doctor` checks it; {prepare.INSTALL}", True)


def when_loaded(action: Callable[[Driver], None]) -> None:
    """Call a function with every imported driver, now and whenever another one is imported."""
    with _lock:
        _when_loaded.append(action)
        for driver in loaded():
            action(driver)


def loaded() -> tuple[Driver, ...]:
    """Return the imported drivers, and SYCL's if dpctl is imported: others have no queues yet."""
    if "dpctl" in sys.modules:
        driver_named("sycl")
    imported = [each for each in _found.values() if not isinstance(each, Missing)]
    return (*imported, *others)


def _is_replaced(name: str) -> bool:
    """Return whether a driver's devices are those of an earlier driver, which comes first.

    SYCL's driver has the processor, and the host's driver only takes over where there is no SYCL:
    where it is damaged or shows no device, an error gives the reason.
    """
    if name != "host":
        return False
    sycl = driver_named("sycl")
    return not isinstance(sycl, Missing) or sycl.is_damaged


def each_driver() -> Iterator[Driver]:
    """Yield the drivers whose devices are listed, importing each when it is reached."""
    for name in NAMES:
        if _is_replaced(name):
            continue
        driver = driver_named(name)
        if not isinstance(driver, Missing):
            yield driver
    yield from others


def drivers() -> tuple[Driver, ...]:
    """Return the drivers of this installation, that of the default device first."""
    return tuple(each_driver())


def drivers_for(value: object) -> Iterator[Driver]:
    """Yield the drivers that may know a device by a string or an object.

    CUDA is not asked, and so not initialized, for strings and objects that are not its own.
    """
    asked: tuple[str, ...]
    if isinstance(value, str):
        is_gpu = "gpu" in value.lower()
        asked = ("cuda", "sycl") if is_name_of_cuda(value) else NAMES if is_gpu else _OF_CPUS
        if value.partition(":")[0] == "host":
            asked = ("host",)
        elif "host" in asked and _is_replaced("host"):
            asked = tuple(name for name in asked if name != "host")
    else:
        package = type(value).__module__.partition(".")[0]
        is_cudas = hasattr(value, "__cuda_stream__") or package == "cuda"
        is_sycls = hasattr(value, "sycl_queue") or package == "dpctl"
        asked = NAMES if is_cudas else ("sycl",) if is_sycls else ()
    names = [name for name in asked if name in NAMES]
    for name in names:
        candidate = driver_named(name)
        if not isinstance(candidate, Missing):
            yield candidate
    if isinstance(value, str):
        names.append("host")  # It was tried above, or another driver has the processor.
    yield from (driver for driver in loaded() if driver.name not in names)


def is_name_of_cuda(words: str) -> bool:
    """Return whether a string names a device as the CUDA driver does; SYCL has a back end of that
    name, whose names have three parts, ``cuda:gpu:0``.
    """
    return words.partition(":")[0] == "cuda" and words.count(":") < 2


def missing() -> tuple[Missing, ...]:
    """Return the drivers that this installation does not have."""
    all_drivers = map(driver_named, NAMES)
    return tuple(each for each in all_drivers if isinstance(each, Missing))


class _ByType(dict[type, Driver]):
    """Drivers by queue type; a missing type is looked up at its first use."""

    def __missing__(self, kind: type) -> Driver:
        for driver in loaded():
            if issubclass(kind, driver.queue_type):
                self[kind] = driver
                return driver
        raise TypeError(f"{kind.__name__} is not a queue")


#: The driver of a queue is ``by_type[type(queue)]``: a lookup without a call, for hot paths.
by_type = _ByType()


def drivers_in_use() -> tuple[Driver, ...]:
    """Return the drivers whose queues have been used in this process."""
    return tuple(dict.fromkeys(by_type.values()))


def driver_of(queue: Queue) -> Driver:
    """Return the driver that a queue belongs to."""
    return by_type[type(queue)]


def order_of(queue: Queue) -> Any:
    """Return the order of a queue's work (:class:`dparray._driver.marks.Marks`)."""
    return by_type[type(queue)].order_of(queue)


@lru_cache(maxsize=256)  # Weak, so that unused queues are released.
def traits_of(queue: Queue) -> Traits:
    """Return the properties of a queue's device; read once."""
    return read_traits(queue)


#: The traits of queues that represent other devices than their own, such as simulated ones.
declared: dict[Queue, Traits] = {}


def read_traits(queue: Queue) -> Traits:
    """Return the properties of a queue's device as its driver reports them, or as declared."""
    if queue in declared:
        return declared[queue]
    driver = driver_of(queue)
    return driver.traits(driver.device_of(queue))


@lru_cache(maxsize=256)
def place_of(queue: Queue) -> tuple[Any, DriverDevice]:
    """Return the domain and the device of a queue, to which memory and built kernels belong."""
    driver = driver_of(queue)
    return driver.domain(queue), driver.device_of(queue)


def is_queue(value: object) -> bool:
    """Return whether an object is a queue of any driver."""
    return type(value) in by_type or any(isinstance(value, each.queue_type) for each in loaded())


def is_event(value: object) -> bool:
    """Return whether an object is an event of any driver."""
    return isinstance(value, tuple(driver.event_type for driver in loaded()))


def is_same_device(queue: Queue, other: Queue) -> bool:
    """Return whether two queues belong to one device."""
    return bool(driver_of(queue).device_of(queue) == driver_of(other).device_of(other))


def root_of(queue: Queue) -> DriverDevice:
    """Return the device of a queue; of a sub-device, the one that it is a part of."""
    driver = driver_of(queue)
    return driver.root_of(driver.device_of(queue))


def sycl_queue_of(owner: object, queue: Queue) -> Any:
    """Return a queue for the public names of SYCL's objects.

    Raises:
        AttributeError: it is a queue of another driver, so that ``hasattr`` is false for libraries
            that look for SYCL's objects.
    """
    traits = traits_of(queue)
    if traits.driver != "sycl":
        raise AttributeError(
            f"{type(owner).__name__} on {traits.filter_string} has no SYCL objects; its queue is "
            "`.queue`"
        )
    return queue
