"""Compute follows data, decided on the host alone, over a stand-in driver."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from dparray import _placement
from dparray._placement import Placement, check_usm_type, common_placement
from dparray.device import USM_TYPES
from dparray.exceptions import ExecutionPlacementError, UsmTypeError
from tests.standin import Device, Queue


@dataclass(frozen=True)
class Array:
    queue: Queue
    usm_type: str = "device"


CPU, GPU = Device("cpu"), Device("gpu")
FIRST, SECOND = Device("first", CPU), Device("second", CPU)


@pytest.fixture(autouse=True)
def described(monkeypatch: pytest.MonkeyPatch, standin: object) -> None:
    """A queue is described by its device's name and its number."""
    monkeypatch.setattr(
        _placement, "describe_queue", lambda queue: f"{queue.device.name}, {queue.number}"
    )


def refused(*queues: Queue) -> ExecutionPlacementError:
    operands = [(f"x{number}", Array(queue)) for number, queue in enumerate(queues, 1)]
    with pytest.raises(ExecutionPlacementError) as caught:
        common_placement("add", operands)
    return caught.value


def test_the_queue_of_the_inputs_decides() -> None:
    queue = Queue(GPU)
    assert common_placement("add", [("x", Array(queue))]) == Placement(queue, "device")
    # Equal queues are the same placement, even as different objects.
    pair = [("x1", Array(Queue(GPU))), ("x2", Array(queue))]
    assert common_placement("add", pair).queue == queue


@pytest.mark.parametrize(("first", "second"), list(itertools.product(USM_TYPES, repeat=2)))
def test_usm_types_are_coerced_device_over_shared_over_host(first: str, second: str) -> None:
    pair = [("x1", Array(Queue(CPU), first)), ("x2", Array(Queue(CPU), second))]
    wanted = min(first, second, key=("device", "shared", "host").index)
    assert common_placement("add", pair).usm_type == wanted
    assert common_placement("add", pair[::-1]).usm_type == wanted


@pytest.mark.parametrize(
    ("queue", "other", "case"),
    [
        (Queue(CPU), Queue(GPU), "different devices"),
        (Queue(CPU), Queue(CPU, 1), "same device, different queues"),
        (Queue(CPU), Queue(FIRST), "a device and a sub-device of it"),
        (Queue(FIRST), Queue(SECOND), "different sub-devices of one device"),
        (Queue(Device("part", FIRST)), Queue(SECOND), "different sub-devices of one device"),
        (Queue(FIRST), Queue(GPU), "different devices"),
    ],
)
def test_two_queues_are_refused_and_the_case_is_named(
    queue: Queue, other: Queue, case: str
) -> None:
    assert f"add: the arrays are not on one queue ({case})" in str(refused(queue, other))
    assert f"({case})" in str(refused(other, queue))


def test_the_error_names_every_operand_and_a_suggested_fix() -> None:
    error = refused(Queue(CPU), Queue(GPU), Queue(CPU), Queue(CPU, 7))
    assert error.function == "add"
    assert error.operands == (
        ("x1", "cpu", "0"), ("x2", "gpu", "0"), ("x3", "cpu", "0"), ("x4", "cpu", "7"),
    )  # fmt: skip
    assert error.remedy == "x2 = x2.to_device(x1.device); x4 = x4.to_device(x1.device)"
    assert "  x4  on cpu, 7" in str(error)


def test_an_unknown_usm_type_lists_those_there_are() -> None:
    assert check_usm_type("shared") == "shared"
    with pytest.raises(UsmTypeError, match="'managed'; expected one of 'device', 'shared', 'host'"):
        check_usm_type("managed")
