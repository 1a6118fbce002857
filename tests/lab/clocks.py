"""Clocks that can be set, and simulated suspends, for the processes of one test.

A real step would affect everyone on the machine, and needs permission; a time namespace has no separate wall clock
(time_namespaces(7)) and its offset is fixed once a process is in it. So `clock_gettime` is replaced in the processes
that are started with `environment`. Kernel time stamps, such as those of captured packets, and statically linked
programs use the real clocks, and timers are unaffected: the library changes only the clocks that a process reads.
"""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path
from typing import Self

CLOCKS = "QOSLAB_TEST_CLOCKS"


class Clocks:
    """Clocks controlled by a file, for processes with `environment`."""

    def __init__(self, file: Path, library: Path | None = None) -> None:
        self._file = file
        self._library = library

    @classmethod
    def made(cls, folder: Path) -> Self:
        """Return clocks that run like those of the machine; `folder` takes the built library."""
        library = folder / "clocks.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        clocks = cls(folder / "clocks", library)
        clocks.move()
        return clocks

    @classmethod
    def of_the_environment(cls) -> Self:
        """Return the clocks of this process's children."""
        return cls(Path(os.environ[CLOCKS]))

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a process with these clocks."""
        assert self._library is not None
        return {CLOCKS: str(self._file), "LD_PRELOAD": str(self._library)}

    def move(self, *, set_s: float = 0.0, asleep_s: float = 0.0) -> None:
        """Offset the wall clock from that of the machine, and simulate a suspend of this length."""
        content = struct.pack("=qq", round(set_s * 1e9), round(asleep_s * 1e9))
        with self._file.open("r+b" if self._file.exists() else "wb") as handle:
            handle.write(content)
