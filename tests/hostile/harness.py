"""Cases of the hostile corpus, and the rules for each of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from processor import processor_slowness

SANDBOX = Path(__file__).with_name("sandbox.py")
FORGED = "FORGED"
"""Text that a hostile name puts at the start of a separate line."""
NAMESPACES = """
mount --bind "$1" /etc/resolv.conf && ip link set lo up && shift || exit 99
exec setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search "$@"
"""
"""Namespaces without these capabilities, in which an unreadable file is unreadable for root, too."""
OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

Make = Callable[[Path], object]


@dataclass(frozen=True)
class HostileCase:
    """Command in a folder with malicious content."""

    name: str
    make: Make
    """Function that writes the files of the folder."""
    words: tuple[str, ...]
    statuses: tuple[int, ...] = (2,)
    says: str = ""
    """Regular expression of the output."""
    writes: tuple[str, ...] = ()
    """Patterns of paths in the folder that the command may write."""
    spares: tuple[str, ...] = ()
    """Patterns of paths within `writes` that it may not write."""
    processor_s: float = 5.0
    memory_mib: float = 500.0
    check: Callable[[Path, CaseResult], None] | None = None


@dataclass(frozen=True)
class CaseResult:
    """Result of a command."""

    status: int | None
    """Exit status; None if the command did not end before the deadline of the sandbox."""
    processor_s: float
    took_s: float
    peak_mib: float
    """Largest resident set of the command or one of its children."""
    left: list[str]
    """Processes that were still running."""
    queries: int
    """Number of DNS queries."""
    stdout: str
    stderr: str
    temporary: list[str]
    """Names of files left in the folder for temporary files and in the home folder."""

    @property
    def text(self) -> str:
        """Return the whole output."""
        return self.stdout + self.stderr


class Sandbox:
    """Client of the server `sandbox.py`."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="h", dir="/tmp"))
        (self._folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions attempts:1 timeout:1\n")
        own = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", NAMESPACES, "sh"]
        self._process = subprocess.Popen(
            [*own, str(self._folder / "resolv.conf"), sys.executable, "-P", str(SANDBOX)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self._folder / "errors").open("w"),
            text=True,
            start_new_session=True,
        )

    def run(self, folder: Path, words: tuple[str, ...]) -> CaseResult:
        """Run a command to its end."""
        here = Path(tempfile.mkdtemp(prefix="c", dir=self._folder))
        temporary, home = here / "tmp", here / "home"
        temporary.mkdir()
        home.mkdir()
        request = {"words": words, "folder": str(folder), "temporary": str(temporary), "home": str(home)}
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the sandbox has ended"
        answer: dict[str, Any] = json.loads(line)
        printed = {name: (here / name).read_text(encoding="utf-8", errors="replace") for name in ("stdout", "stderr")}
        left = [ascii(each.relative_to(here)) for place in (temporary, home) for each in place.rglob("*")]
        shutil.rmtree(here, ignore_errors=True)
        return CaseResult(**answer, **printed, temporary=left)

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def sandbox() -> Iterator[Sandbox]:
    """Yield a sandbox that ends with the block."""
    server = Sandbox()
    try:
        yield server
    finally:
        server.close()


def tree_state(folder: Path) -> dict[str, tuple[int, int, int]]:
    """State of everything in a folder by path: kind and mode, size, and modification time."""
    found, waiting = {}, [os.fsencode(folder)]
    while waiting:
        place = waiting.pop()
        try:
            entries = list(os.scandir(place))
        except OSError:
            continue
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
            changed = 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns
            name = os.fsdecode(os.path.relpath(entry.path, os.fsencode(folder)))
            found[name] = (status.st_mode, size, changed)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
    return found


def tree_changes(case: HostileCase, before: dict[str, tuple[int, int, int]], folder: Path) -> list[str]:
    """Return the paths that were written without permission of the case."""
    after = tree_state(folder)
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]

    def allowed(name: str) -> bool:
        return any(fnmatchcase(name, each) for each in case.writes) and not any(
            fnmatchcase(name, each) for each in case.spares
        )

    return sorted(ascii(name) for name in changed if not allowed(name))


def assert_held(case: HostileCase, server: Sandbox, folder: Path) -> CaseResult:
    """Prepare the folder, run the command, and check all rules."""
    case.make(folder)
    before = tree_state(folder)
    found = server.run(folder, case.words)
    text = f"{found.text[:3000]}\n{found.status=} {found.processor_s=:.1f} {found.peak_mib=:.0f}"
    assert found.status is not None, f"it did not end: {text}"
    assert found.status in case.statuses, text
    assert "Traceback" not in found.text and "defect of qoslab" not in found.text, text
    assert "bug in qoslab" not in found.text, text
    if case.says:
        assert re.search(case.says, found.text), text
    if found.status == 2:
        assert found.stderr.strip() or '"' in found.stdout, "status 2 without a message"
    assert not OBEYED.search(found.text.replace("\r\n", "\n")), f"a terminal would obey this: {text!a}"
    forged = [line for line in re.split("[\n\r\v\f\x85\u2028\u2029]", found.text) if line.lstrip().startswith(FORGED)]
    assert not forged, text
    assert not [line for line in found.text.splitlines() if line.lstrip().startswith("::")], text
    assert not found.left and not found.temporary, f"{found.left} {found.temporary} {text}"
    assert found.queries == 0, f"{found.queries} queries for names: {text}"
    assert not tree_changes(case, before, folder), f"{tree_changes(case, before, folder)} {text}"
    assert found.peak_mib <= case.memory_mib, text
    if found.processor_s > case.processor_s:
        # Measured only if the result depends on it, because the measurement takes a while.
        assert found.processor_s <= case.processor_s * processor_slowness(), text
    if case.check is not None:
        case.check(folder, found)
    return found
