"""Run PTX with NumPy: all threads of many blocks as lanes, for tests on machines without a GPU.

    memory = Memory()
    x = memory.put(np.ones(1000, "f4"))  # an address
    Module(ptx).launch("kernel", (4,), (256,), [x, np.int64(1000)], memory)
    memory.get(x, "f4", 1000)

The lanes at the lowest position in the code run first, so that branches join as early as possible.
``bar.sync`` waits for the threads of a block that have not ended, ``shfl.sync`` and
``bar.warp.sync`` for those of the mask in a warp, as GPUs do since Volta. Accesses outside of all
arrays, misaligned accesses, deadlocks and endless loops raise :class:`EmulationError`.

Memory order is strong (races between threads are hidden) unless ``Memory.late`` is set. Not
emulated: textures, tensor cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tests.cuda import ptx_instructions
from tests.cuda.ptx_order import LateStores
from tests.cuda.ptx_text import (
    EmulationError,
    EndlessError,
    Function,
    Instruction,
    Variable,
    functions,
)

__all__ = ["EmulationError", "EndlessError", "Memory", "Module"]

WARP = 32
_FIRST_ADDRESS = 1 << 16
_GUARD = 256  # bytes after each array that belong to none
_ENDED = np.int64(1 << 40)
# States of lanes.
RUNS, WAITS_FOR_BLOCK, WAITS_FOR_WARP = range(3)
_TURNS_TO_LATE_LANES = 256


class Memory:
    """Global memory: arrays with bounds, in one buffer.

    Attributes:
        bytes: the buffer.
        start: the address of its first byte.
        bounds: the first address of each array, and the address after its last.
        written: whether each byte was written, or None if that is not noted.
        late: the seed of delays with which stores reach other groups, or None for no delays.
    """

    start = 0
    written: np.ndarray | None = None
    late: int | None = None

    def __init__(self, size: int = 1 << 20) -> None:
        self.bytes = np.zeros(size, np.uint8)
        self.bounds = np.zeros((0, 2), np.int64)
        self._end = _FIRST_ADDRESS

    def put(self, values: Any, align: int = 256) -> int:
        """Copy an array into memory; return its address."""
        octets = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        start = -(-self._end // align) * align
        self._end = start + octets.size + _GUARD
        if self._end > self.bytes.size:
            grown = np.zeros(2 * self._end // 8 * 8, np.uint8)
            grown[: self.bytes.size] = self.bytes
            self.bytes = grown
        self.bytes[start : start + octets.size] = octets
        self.bounds = np.vstack([self.bounds, [start, start + octets.size]])
        return start

    def get(self, address: int, dtype: Any, count: int) -> np.ndarray:
        """Return elements from an address on."""
        nbytes = np.dtype(dtype).itemsize * count
        return self.bytes[address : address + nbytes].view(dtype).copy()

    def check(self, addresses: np.ndarray, nbytes: int) -> None:
        """Raise EmulationError for an access outside of every array."""
        first = addresses.astype(np.int64)
        place = np.searchsorted(self.bounds[:, 0], first, "right") - 1
        is_inside = place >= 0
        if len(self.bounds):
            is_inside &= first + nbytes <= self.bounds[place, 1]
        if not is_inside.all():
            wrong = int(first[~is_inside][0])
            raise EmulationError(
                f"an access of {nbytes} bytes at {wrong:#x}, outside of all arrays"
            )

    def note(self, places: np.ndarray, nbytes: int, writes: bool) -> None:
        """Note that bytes were written, or raise EmulationError for a read of others."""
        assert self.written is not None
        at = places.astype(np.int64)[:, None] + np.arange(nbytes)
        if writes:
            self.written[at] = 1
        elif not self.written[at].all():
            wrong = int(at[~self.written[at].astype(bool).all(1)][0, 0])
            raise EmulationError(f"a read at {self.start + wrong:#x}, where nothing was written")


class Module:
    """A module of PTX.

    Attributes:
        printed: the lines that its kernels printed.
    """

    def __init__(self, text: str | bytes) -> None:
        text = text.decode() if isinstance(text, bytes) else text
        self.functions, self.variables = functions(text)
        self.printed: list[str] = []

    def place(self, memory: Memory) -> dict[str, int]:
        """Put the module's global variables into memory; return their addresses."""
        return {
            each.name: memory.put(np.frombuffer(each.content, np.uint8))
            for each in self.variables
            if each.space == "global"
        }

    def launch(
        self,
        entry: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Any],
        memory: Memory,
        *,
        shared: int = 0,
        addresses: dict[str, int] | None = None,
        lanes: int = 1 << 16,
        max_turns: int = 1_000_000,
    ) -> int:
        """Run a kernel; return how many instructions its threads executed together.

        Args:
            entry: the kernel's name.
            grid, block: sizes in CUDA's order of dimensions, ``x`` first.
            arguments: NumPy numbers, or addresses as Python integers.
            memory: global memory.
            shared: the bytes of dynamic shared memory.
            addresses: of the global variables, from :meth:`place`; without, they are new.
            lanes: how many threads run together, at least those of one block.
            max_turns: how many turns threads that run together may take.

        Raises:
            EmulationError: a fault, or an instruction that is not emulated.
            EndlessError: it takes more turns.
        """
        block = (*block, 1, 1)[:3]
        grid = (*grid, 1, 1)[:3]
        addresses = self.place(memory) if addresses is None else addresses
        executed = 0
        step = max(1, lanes // prod(block))
        for first in range(0, prod(grid), step):
            numbers = np.arange(first, min(first + step, prod(grid)))
            run = Run(self, entry, grid, block, numbers, memory, addresses, shared)
            run.pass_arguments(arguments)
            executed += run.run(max_turns)
        return executed


def static_shared(module: Module) -> int:
    """Return the bytes of shared memory that a module's variables take."""
    inner = [each for function in module.functions.values() for each in function.variables]
    end = 0
    for each in (*module.variables, *inner):
        if each.space == "shared" and each.nbytes:
            end = _aligned(end, each) + each.nbytes
    return end


class Code:
    """The instructions of a kernel and of the functions that it may call, in one list."""

    def __init__(self, module: Module, entry: str) -> None:
        others = [name for name in module.functions if name != entry]
        self.functions = [module.functions[name] for name in (entry, *others)]
        self.instructions: list[tuple[Function, Instruction]] = []
        self.starts: dict[str, int] = {}
        self.labels: dict[tuple[str, str], int] = {}
        for function in self.functions:
            start = self.starts[function.name] = len(self.instructions)
            for label, at in function.labels.items():
                self.labels[function.name, label] = start + at
            self.instructions += [(function, each) for each in function.code]


class Run:
    """Some blocks of a launch, run together.

    Attributes:
        count: the number of lanes.
        positions: the position of each lane in the code; at its end, the lane has ended.
        states: whether each lane runs or waits.
        registers: the values of each function's registers, by lane.
        parameters: the bytes of the kernel's parameters.
        slots: parameters and results of calls: by name, then by offset in bytes.
    """

    def __init__(
        self,
        module: Module,
        entry: str,
        grid: Sequence[int],
        block: Sequence[int],
        numbers: np.ndarray,
        memory: Memory,
        addresses: dict[str, int],
        shared: int,
    ) -> None:
        self.module, self.memory = module, memory
        self.late = None if memory.late is None else LateStores(memory.late)
        self.code = Code(module, entry)
        self.size = prod(block)
        self.count = self.size * numbers.size
        self._number(grid, block, numbers)
        self._lay_out(addresses, shared, numbers.size)
        self.positions = np.zeros(self.count, np.int64)
        self.states = np.zeros(self.count, np.int8)
        self.carry = np.zeros(self.count, bool)
        self.registers = {
            function.name: {
                name: np.zeros(self.count, dtype) for name, dtype in function.registers.items()
            }
            for function in self.code.functions
        }
        self.returns = {each.name: np.zeros(self.count, np.int64) for each in self.code.functions}
        self.slots: dict[str, dict[int, np.ndarray]] = {}
        prepared = ptx_instructions.prepared(self)
        self.steps = [step for step, _ in prepared]
        self.stops = [is_last for _, is_last in prepared]

    def _number(self, grid: Sequence[int], block: Sequence[int], numbers: np.ndarray) -> None:
        """Fill the special registers."""
        lane = np.arange(self.count)
        within, self.block_of = lane % self.size, lane // self.size
        of_block = numbers[self.block_of]
        values: dict[str, Any] = {"laneid": within % WARP}
        for at, axis in enumerate("xyz"):
            values[f"tid.{axis}"] = within // prod(block[:at]) % block[at]
            values[f"ctaid.{axis}"] = of_block // prod(grid[:at]) % grid[at]
            values[f"ntid.{axis}"] = np.full(self.count, block[at])
            values[f"nctaid.{axis}"] = np.full(self.count, grid[at])
        self.special = {f"%{name}": each.astype(np.uint32) for name, each in values.items()}
        self.lane_in_warp = within % WARP
        warps = -(-self.size // WARP)
        self.warp_of = self.block_of * warps + within // WARP
        #: The lane of each place in each warp, -1 where there is none.
        self.warps = np.full((numbers.size * warps, WARP), -1)
        self.warps[self.warp_of, self.lane_in_warp] = lane

    def _lay_out(self, addresses: dict[str, int], shared: int, blocks: int) -> None:
        """Give shared and local variables their addresses."""
        self.addresses = dict(addresses)
        inner = [each for function in self.code.functions for each in function.variables]
        variables = sorted([*self.module.variables, *inner], key=lambda each: each.nbytes == 0)
        nbytes = {"shared": 0, "local": 0}
        for each in variables:
            if each.space in nbytes:
                start = _aligned(nbytes[each.space], each)
                self.addresses[each.name] = start
                nbytes[each.space] = start + each.nbytes
        start = -(-nbytes["shared"] // 16) * 16
        dynamic = (each for each in variables if each.space == "shared" and not each.nbytes)
        self.addresses |= {each.name: start for each in dynamic}
        end = 0
        for parameter in self.code.functions[0].layout:
            self.addresses[parameter.name] = end = -(-end // parameter.align) * parameter.align
            end += parameter.nbytes
        self.parameters = np.zeros(-(-end // 16) * 16, np.uint8)
        self.shared_size = -(-(start + shared) // 16) * 16
        self.local_size = -(-nbytes["local"] // 16) * 16
        self.shared_end = start + shared
        self.shared = np.zeros(self.shared_size * blocks, np.uint8)
        self.local = np.zeros(self.local_size * self.count, np.uint8)

    def pass_arguments(self, arguments: Sequence[Any]) -> None:
        """Store the arguments of the launch."""
        for each, value in zip(self.code.functions[0].layout, arguments, strict=True):
            number = np.asarray(np.uint64(value) if isinstance(value, int) else value)
            octets = np.frombuffer(number.tobytes(), np.uint8)
            place = self.addresses[each.name]
            self.parameters[place : place + octets.size] = octets

    # -- the schedule ------------------------------------------------------------------------------

    def run(self, max_turns: int) -> int:
        """Run all lanes to the end; return the number of executed instructions."""
        end, executed = len(self.steps), 0
        with np.errstate(all="ignore"):
            for turn in range(max_turns):
                if self.late is not None:
                    self.late.pass_turn(self)
                ready = np.where(self.states == RUNS, self.positions, _ENDED)
                at = int(ready.min())
                if at >= end:
                    if not self._has_released():
                        if self.late is not None:
                            self.late.end(self)
                        return executed
                    continue
                if turn % _TURNS_TO_LATE_LANES == _TURNS_TO_LATE_LANES - 1:
                    at = int(ready[ready < end].max())  # others may wait for these in a loop
                executed += self._run_from(at, ready)
        raise EndlessError(f"no end after {max_turns} turns, at {self._place()}")

    def _run_from(self, at: int, ready: np.ndarray) -> int:
        """Run lanes at a position up to a branch, or to where other lanes are."""
        chosen = np.flatnonzero(ready == at)
        who = slice(None) if chosen.size == self.count else chosen
        later = ready[ready > at]
        limit = min(int(later.min()) if later.size else len(self.steps), len(self.steps))
        first = at
        while at < limit:
            has_moved = self.steps[at](who, at)
            if has_moved:
                return at + 1 - first
            at += 1
            if self.stops[at - 1]:
                break
        self.positions[who] = at
        return at - first

    def is_alive(self) -> np.ndarray:
        """Return which lanes have not ended."""
        return self.positions < len(self.steps)

    def _place(self) -> str:
        alive = self.positions[self.is_alive()]
        return repr(self.code.instructions[int(alive.min())][1].text)

    def _has_released(self) -> bool:
        """Let lanes go on whose barrier or exchange is complete; return False if all have ended.

        Raises:
            EmulationError: all lanes wait.
        """
        alive = self.is_alive()
        if not alive.any():
            return False
        waiting = self.states == WAITS_FOR_BLOCK
        by_block = (waiting | ~alive).reshape(-1, self.size).all(1)
        free = by_block[self.block_of] & waiting
        self.positions[free] += 1  # all barriers are the same one, wherever they are in the code
        self.states[free] = RUNS
        exchanged = ptx_instructions.exchange_waiting(self)
        if not free.any() and not exchanged:
            raise EmulationError(f"deadlock: {int(alive.sum())} threads wait, at {self._place()}")
        return True


def _aligned(at: int, variable: Variable) -> int:
    return -(-at // variable.align) * variable.align
