"""PTX of a kernel, run on the CPU: all threads of a block go in step, from instruction to instruction.

It knows the instructions of `cute_multiply` and refuses any other by its name. An address outside of its array, or
without the alignment that its instruction asks for, ends the run. Threads go in step: a missing barrier is not seen.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Lanes = NDArray[np.uint64]  # a register, of every thread
WARP = 32
VECTOR = 16  # bytes of a copy, and of a row of a matrix
_NOTHING = ("bar.sync", "cp.async.commit_group", "cp.async.wait_group")
_MATRICES = ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16")
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "setp.ne.b32": np.not_equal,
    "setp.gt.s32": np.greater,
    "setp.lt.s32": np.less,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add.s32": np.add,
    "add.s64": np.add,
    "and.b32": np.bitwise_and,
    "or.b32": np.bitwise_or,
    "or.b64": np.bitwise_or,
    "xor.b32": np.bitwise_xor,
    "shl.b32": np.left_shift,
    "shl.b64": np.left_shift,
    "mul.lo.s64": np.multiply,
}


class PtxError(ValueError):
    """Error: an instruction that is not known here, or an address that a card would refuse."""


def bfloat16(numbers: NDArray[Any]) -> NDArray[np.uint16]:
    """Return numbers rounded to bfloat16, to even, as their bits."""
    bits = numbers.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def float32(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return what bits of bfloat16 stand for."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def address_of(array: int) -> int:
    """Return where an array lies, by its place in `memory`."""
    return (array + 1) << 32


def run(
    ptx: str,
    parameters: list[bytes],
    memory: list[NDArray[np.uint8]],
    grid: tuple[int, int],
    threads: int,
    shared_bytes: int,
) -> None:
    """Run each block of a grid, one after the other.

    Args:
        ptx: a text with one kernel.
        parameters: its parameters, each as its bytes; an array's address is `address_of`.
        memory: the arrays, as bytes; they are written to.
        grid: blocks in x and in y.
        threads: of a block, a multiple of 32.
        shared_bytes: of a block.
    Raises:
        PtxError: an instruction is not known, or an address is refused.
    """
    code, labels = _read(ptx)
    for x in range(grid[0]):
        for y in range(grid[1]):
            lanes = {
                "%ctaid.x": np.full(threads, x),
                "%ctaid.y": np.full(threads, y),
                "%tid.x": np.arange(threads),
            }
            block = _Block(
                parameters,
                memory,
                # Bytes that nobody has written are no numbers.
                np.full(shared_bytes, 0xFF, np.uint8),
                {name: value.astype(np.uint64) for name, value in lanes.items()},
            )
            block.run(code, labels)


def _read(ptx: str) -> tuple[list[str], dict[str, int]]:
    """Return the instructions of the kernel, and the place of each label."""
    body = re.sub(r"//[^\n]*", "", ptx[ptx.index("{", ptx.index(".entry")) + 1 : ptx.rindex("}")])
    body = re.sub(r"\w+_param_(\d+)", r"\1", body)  # a parameter by its number
    code: list[str] = []
    labels: dict[str, int] = {}
    for statement in body.split(";"):
        words = " ".join(statement.split())
        while label := re.match(r"(\$\w+): ?", words):
            labels[label[1]] = len(code)
            words = words[label.end() :]
        if words and not words.startswith("."):
            code.append(words)
    return code, labels


@dataclass
class _Block:
    parameters: list[bytes]
    memory: list[NDArray[np.uint8]]
    shared: NDArray[np.uint8]
    registers: dict[str, Lanes] = field(default_factory=dict)

    def run(self, code: list[str], labels: dict[str, int]) -> None:
        at = 0
        while code[at] != "ret":
            words, at = code[at], at + 1
            if words.startswith("@"):
                guard, words = words[1:].split(" ", 1)
                taken = self.registers[guard]
                if not words.startswith("bra") or taken.any() != taken.all():
                    raise PtxError(f"expected a branch that all threads take, or none, got {words}")
                if not taken.all():
                    continue
            name, _, rest = words.partition(" ")
            if name.startswith("bra"):
                at = labels[rest]
            elif name not in _NOTHING:
                operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^\s,]+", rest)
                self.step(name, operands)

    def step(self, name: str, operands: list[str]) -> None:
        kind = name.split(".")[0]
        bits = 64 if name.endswith("64") else 32
        into, given = operands[0], operands[1:]
        if name.startswith("ld.param"):
            self.parameter(into, given[0], bits)
        elif kind == "mov" and "{" in into:  # 64 bits into two halves
            whole = self.value(given[0], 64)
            for half, one in enumerate(_list(into)):
                self.put(one, whole >> np.uint64(32 * half))
        elif kind == "mov" and "{" in given[0]:
            low, high = (self.value(one) for one in _list(given[0]))
            self.put(into, low | high << np.uint64(32), 64)
        elif kind == "mov" or name == "shfl.sync.idx.b32":  # a shuffle of what is the same in all
            value = self.value(given[0], bits)
            if kind != "mov" and len(np.unique(value)) > 1:
                raise PtxError(f"expected a shuffle of one value, got {name}")
            self.put(into, value, bits)
        elif name == "cvt.u64.u32":
            self.put(into, self.value(given[0]), 64)
        elif name == "and.pred":
            self.registers[into] = self.registers[given[0]] & self.registers[given[1]]
        elif name in _COMPARE:
            self.registers[into] = _COMPARE[name](*(_signed(self.value(one)) for one in given))
        elif name == "selp.b32":
            self.put(into, np.where(self.registers[given[2]], self.value(given[0]), self.value(given[1])))
        elif name == "neg.s32":
            self.put(into, -_signed(self.value(given[0])))
        elif name == "mul.wide.u32":
            self.put(into, self.value(given[0]) * self.value(given[1]), 64)
        elif name in ("mad.lo.s32", "mad.lo.s64"):
            a, b, c = (self.value(one, bits) for one in given)
            self.put(into, a * b + c, bits)
        elif name == "shr.u32":
            self.put(into, self.value(given[0]) >> self.value(given[1]))
        elif name == "shr.s32":
            self.put(into, _signed(self.value(given[0])) >> int(given[1]))
        elif name in _BINARY:
            self.put(into, _BINARY[name](*(self.value(one, bits) for one in given)), bits)
        elif name == "cvt.rn.bf16x2.f32":
            high, low = (bfloat16(self.number(one)).astype(np.uint64) for one in given)
            self.put(into, high << np.uint64(16) | low)
        elif name == "cp.async.ca.shared.global" and given[1:] == ["16", "16"]:
            self.copy(into, given[0])
        elif name in _MATRICES:
            self.matrices(_list(into), given[0], "trans" in name)
        elif name == "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32":
            self.product(*(_list(one) for one in operands))
        elif name == "st.global.b32":
            for address, value in zip(self.address(into), self.value(given[0]), strict=True):
                self.there(int(address), 4)[:] = np.frombuffer(int(value).to_bytes(4, "little"), np.uint8)
        else:
            raise PtxError(f"expected an instruction that is known here, got {name}")

    def value(self, operand: str, bits: int = 32) -> Lanes:
        """Return an operand of every thread."""
        if operand in self.registers:
            return self.registers[operand]
        threads = len(self.registers["%tid.x"])
        if operand.startswith("__dynamic_shmem"):
            return np.zeros(threads, np.uint64)
        number = int(operand[2:], 16) if operand.startswith("0f") else int(operand, 0)
        return np.full(threads, number & (1 << bits) - 1, np.uint64)

    def number(self, operand: str) -> NDArray[np.float32]:
        return self.value(operand).astype(np.uint32).view(np.float32)

    def put(self, register: str, value: NDArray[Any], bits: int = 32) -> None:
        self.registers[register] = value.astype(np.uint64) & np.uint64((1 << bits) - 1)

    def parameter(self, into: str, place: str, bits: int) -> None:
        number, _, offset = place.strip("[]").partition("+")
        names = _list(into) if "{" in into else [into]
        for at, one in enumerate(names):
            start = int(offset or 0) + at * bits // 8
            value = int.from_bytes(self.parameters[int(number)][start : start + bits // 8], "little")
            self.put(one, self.value(str(value), bits), bits)

    def address(self, operand: str) -> Lanes:
        register, _, offset = operand.strip("[]").partition("+")
        return self.value(register, 64) + np.uint64(int(offset or 0))

    def there(self, address: int, length: int) -> NDArray[np.uint8]:
        """Return the bytes at an address in the card's memory."""
        array, at = (address >> 32) - 1, address & 0xFFFFFFFF
        if not 0 <= array < len(self.memory) or at + length > len(self.memory[array]) or at % length:
            raise PtxError(f"expected {length} bytes of an array, at a multiple of as many, got {address:#x}")
        return self.memory[array][at : at + length]

    def row(self, address: int) -> NDArray[np.uint8]:
        """Return 16 bytes of shared memory."""
        if address % VECTOR or address + VECTOR > len(self.shared):
            raise PtxError(f"expected 16 bytes of shared memory, at a multiple of 16, got {address}")
        return self.shared[address : address + VECTOR]

    def copy(self, into: str, source: str) -> None:
        for to, start in zip(self.address(into), self.address(source), strict=True):
            self.row(int(to))[:] = self.there(int(start), VECTOR)

    def matrices(self, into: list[str], place: str, turned: bool) -> None:
        """Take four matrices of 8 x 8: eight threads name the rows of each, and a thread gets two numbers of each."""
        lane = np.arange(WARP)
        starts = self.address(place).astype(np.int64).reshape(-1, len(into), 8)
        found = np.empty((len(into), *starts.shape[:1], WARP), np.uint64)
        for warp, matrix in np.ndindex(starts.shape[:2]):
            rows = np.stack([self.row(int(start)).view(np.uint16) for start in starts[warp, matrix]])
            two = (rows.T if turned else rows)[lane // 4].astype(np.uint64)
            low, high = (two[lane, 2 * (lane % 4) + half] for half in range(2))
            found[matrix, warp] = low | high << np.uint64(16)
        for name, numbers in zip(into, found, strict=True):
            self.put(name, numbers.reshape(-1))

    def product(self, into: list[str], a: list[str], b: list[str], c: list[str]) -> None:
        """Multiply 16 x 16 by 16 x 8 in every warp, each number where the PTX manual has it."""
        lane = np.arange(WARP)
        group, within = lane // 4, lane % 4
        warps = len(self.registers["%tid.x"]) // WARP
        A, B = np.empty((warps, 16, 16), np.float32), np.empty((warps, 16, 8), np.float32)
        for half in range(2):
            for q, name in enumerate(a):
                A[:, group + 8 * (q % 2), 2 * within + half + 8 * (q // 2)] = self.half(name, half)
            for q, name in enumerate(b):
                B[:, 2 * within + half + 8 * q, group] = self.half(name, half)
        made = A @ B
        sums = [
            self.number(name) + made[:, group + 8 * (q // 2), 2 * within + q % 2].reshape(-1)
            for q, name in enumerate(c)
        ]
        for name, numbers in zip(into, sums, strict=True):
            self.put(name, numbers.astype(np.float32).view(np.uint32))

    def half(self, register: str, half: int) -> NDArray[np.float32]:
        """Return one of the two numbers of a register, warp by warp."""
        bits = (self.value(register) >> np.uint64(16 * half)) & np.uint64(0xFFFF)
        return float32(bits.astype(np.uint16)).reshape(-1, WARP)


def _list(operand: str) -> list[str]:
    return [one.strip() for one in operand.strip("{}").split(",")]


def _signed(value: Lanes) -> NDArray[np.int64]:
    return value.astype(np.uint32).view(np.int32).astype(np.int64)


def matrix_parameter(array: int, rows: int, columns: int, stride: int) -> bytes:
    """Return a matrix as a kernel of CuTe-DSL is handed it: address, two lengths and a stride."""
    return struct.pack("<Qiiq", address_of(array), rows, columns, stride)
