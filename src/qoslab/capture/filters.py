"""Capture filters compiled by libpcap, which dumpcap uses too (pcap-filter(7)): their validity and their programs.

A separate process, `python -m qoslab.capture.filters`, reads a filter, compiles it and prints JSON: compilation is C
code that no signal interrupts, and it takes minutes for some filters.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
from typing import Any, TypeAlias

from qoslab.capture.base import CaptureError
from qoslab.model.capture_filters import filter_text_problem
from qoslab.system.programs import describe_exit, python_module_command

Instruction: TypeAlias = tuple[int, int, int, int]
"""Instruction of a classic Berkeley packet filter: code, jump if true, jump if false, operand."""

LIBRARIES = ("libpcap.so.0.8", "libpcap.so.1")
"""Library names on Debian and Ubuntu, and elsewhere."""
COMPILE_S = 10.0
"""Time limit for compiling a filter in seconds; filters with `MAX_TERMS` terms take some milliseconds."""
COMPILE_BYTES = 2**30
"""Maximum address space of the compiling process."""
_INHERITED_VARIABLES = ("PATH", "LANG", "LC_", "LD_LIBRARY_PATH", "PYTHON")
"""Prefixes of the environment variables that the compiling process needs."""
_ETHERNET = 1
"""DLT_EN10MB, the link type of every interface in a lab."""
_SNAPLEN = 262144
_UNKNOWN_NETMASK = 0xFFFFFFFF


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.POINTER(_Instruction)))


def _load_libpcap() -> ctypes.CDLL | None:
    for name in sys.argv[1:]:
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        found.pcap_open_dead.restype = ctypes.c_void_p
        found.pcap_geterr.restype = ctypes.c_char_p
        return found
    return None


def _compile_in_process(text: str) -> tuple[str, tuple[Instruction, ...]] | None:
    """Return libpcap's error for a filter, and its program; None without libpcap."""
    problem, hint = filter_text_problem(text)
    if problem:
        return "; ".join(filter(None, (problem, hint))), ()
    try:
        done = subprocess.run(
            python_module_command("qoslab.capture.filters", *LIBRARIES),
            # Passwords may be in the environment, and any process of this user can read that of another.
            env={name: value for name, value in os.environ.items() if name.startswith(_INHERITED_VARIABLES)},
            input=text.encode(),
            capture_output=True,
            timeout=COMPILE_S,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return f"libpcap did not compile it within {COMPILE_S:g} s", ()
    if done.returncode:
        return f"the process compiling it {describe_exit(done.returncode)}", ()
    found: dict[str, Any] | None = json.loads(done.stdout)
    return None if found is None else (found["problem"], tuple(tuple(each) for each in found["program"]))


def _compile_filter(text: bytes) -> dict[str, Any] | None:
    """Compile a filter with libpcap in this process; None without libpcap."""
    library = _load_libpcap()
    if library is None:
        return None
    handle = ctypes.c_void_p(library.pcap_open_dead(_ETHERNET, _SNAPLEN))
    program = _Program()
    try:
        if library.pcap_compile(handle, ctypes.byref(program), text, 1, ctypes.c_uint32(_UNKNOWN_NETMASK)):
            return {"problem": library.pcap_geterr(handle).decode(errors="replace"), "program": []}
        found = (program.instructions[number] for number in range(program.length))
        return {"problem": "", "program": [(each.code, each.jt, each.jf, each.k) for each in found]}
    finally:
        library.pcap_close(handle)


def filter_problem(text: str) -> str | None:
    """Return libpcap's error for a filter; empty if it is valid, None without libpcap."""
    compiled = _compile_in_process(text)
    return None if compiled is None else compiled[0]


def filter_program(text: str) -> tuple[Instruction, ...]:
    """Return the program of a filter for Ethernet frames; empty for the empty filter, which matches all frames.

    Raise `CaptureError` for an invalid filter, or without libpcap.
    """
    if not text.strip():
        return ()
    compiled = _compile_in_process(text)
    if compiled is None:
        raise CaptureError(f"the filter {text!r} cannot be compiled: libpcap is missing ({' or '.join(LIBRARIES)})")
    problem, program = compiled
    if problem:
        raise CaptureError(f"the filter {text!r} is not valid: {problem}")
    return program


def main() -> None:
    """Compile the filter from standard input; the arguments are the libraries to try."""
    resource.setrlimit(resource.RLIMIT_AS, (COMPILE_BYTES, COMPILE_BYTES))
    json.dump(_compile_filter(sys.stdin.buffer.read()), sys.stdout)


if __name__ == "__main__":
    main()
