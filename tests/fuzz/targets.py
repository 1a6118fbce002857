"""Fuzz targets in Python: functions of bytes that raise if a property is violated.

`runner.py` runs them in a fuzzer, `tests/unit/test_fuzz_corpus.py` replays the corpora.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CORPUS = Path(__file__).with_name("corpus")
for folder in (TESTS, TESTS / "unit"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

import sample_run  # noqa: E402
from fake_router import FakeRouter, type_lines  # noqa: E402

from qoslab.analysis.packets import bin_packets  # noqa: E402
from qoslab.capture import CaptureError  # noqa: E402
from qoslab.capture.packet_tables import read_packets  # noqa: E402
from qoslab.cli import main  # noqa: E402
from qoslab.errors import UserError  # noqa: E402
from qoslab.ios.parse import parse_config  # noqa: E402
from qoslab.lab_kinds import lab_kind  # noqa: E402
from qoslab.plan import make_plan  # noqa: E402
from qoslab.schema import load_sweep  # noqa: E402

SHOWN = "terminal length 0\rshow running-config\r"


@cache
def scratch() -> Path:
    """Return a folder of this process, in memory if possible."""
    memory = Path("/dev/shm")
    kept = tempfile.TemporaryDirectory(prefix="qoslab-fuzz-", dir=memory if os.access(memory, os.W_OK) else None)
    _CACHE.append(kept)
    return Path(kept.name)


_CACHE: list[tempfile.TemporaryDirectory[str]] = []


def experiment(data: bytes) -> None:
    """Plan an experiment file: it is valid, or its findings name it."""
    file = scratch() / "e.yml"
    file.write_bytes(data)
    try:
        cells = make_plan(load_sweep(file)).cells
        assert all(cell.identity.arm for cell in itertools.islice(cells, 20))
        load_sweep(file, {}, lab_kind("simulated").check)
    except UserError as error:
        assert getattr(error, "findings", ()) or str(file) in error.message, error.message
    else:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as text:
            assert main(["plan", str(file)]) == 0, text.getvalue()


def capture(data: bytes) -> None:
    """Read a capture into a table: it has only packets, and errors name the file."""
    file = scratch() / "x.pcapng"
    file.write_bytes(data)
    try:
        table = bin_packets(read_packets(file, piece=16), 0).to_pandas()
    except CaptureError as error:
        assert str(file) in error.message, error.message
    else:
        assert (table["packets"] > 0).all() and (table["bytes"] >= 0).all()


def shell(data: bytes) -> None:
    """Type lines at a virtual router: its configuration can be shown afterwards, and parsed again."""
    router = FakeRouter()
    type_lines(router, "terminal length 0\r" + data.decode(errors="replace") + "\r")
    router.device.hostname = "R1"
    text = type_lines(router, SHOWN)
    assert text.endswith("\nend\n\nR1#"), text[-200:]
    # The login banner comes before the prompt.
    shown = text.partition("Building configuration...\n\nCurrent configuration")[2].partition("\n!\n")[2]
    parse_config(shown.rpartition("\nend\n")[0], router.device.hardware, source="shown")


@cache
def whole_file() -> Path:
    """Return a run folder in which one file at a time is changed and restored."""
    return sample_run.make_run_of_one_arm(scratch()).path


def run(data: bytes) -> None:
    """Report a run folder with one damaged file, chosen by the first byte and resealed: it is reported, refused, or
    invalid."""
    folder = whole_file()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".parquet", ".html"))
    # Most derived files are not input.
    files = [path for path in files if path.name in ("manifest.json", "experiment.yml") or "cells" in path.parts]
    file = files[(data[0] if data else 0) % len(files)]
    content = {path: path.read_bytes() for path in (file, *folder.rglob("cell.json"), folder / "manifest.json")}
    try:
        file.write_bytes(data[1:])
        sample_run.reseal(folder)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as text:
            status = main(["report", str(folder)])
        assert status in (0, 1, 2, 3), text.getvalue()
    finally:
        for path, before in content.items():
            path.write_bytes(before)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "capture": capture,
    "experiment": experiment,
    "run": run,
    "shell": shell,
}
