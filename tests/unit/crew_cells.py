"""Functions that stand for a cell in a worker of a cluster; they import little, since each worker imports them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from qoslab.run.cluster import remote_worker as cluster_worker


def pass_cell(task: dict[str, Any]) -> dict[str, Any]:
    """Return a finished cell with a file, in place of `cluster_worker.run_cell`."""
    import io
    import json
    import zipfile

    from qoslab.results.sealed_files import add_seal

    record = {name: task[name] for name in ("arm", "parameters", "repetition", "attempt", "key")} | {"valid": True}
    text = json.dumps(record, indent=2)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("cell.json", add_seal(text.encode()))
    return {"record": text, "files": content.getvalue()}


def die(task: dict[str, Any]) -> dict[str, Any]:
    """Kill the worker."""
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def die_once(task: dict[str, Any]) -> dict[str, Any]:
    """Kill the worker in the first attempt of the cell."""
    return die(task) if task["attempt"] == 1 else pass_cell(task)


def print_output(task: dict[str, Any]) -> dict[str, Any]:
    """Show progress to watchers; kill the worker in the first attempt."""
    counters = Path(task["cell"]) / "coming" / "counters"
    counters.mkdir(parents=True)
    (counters / "R1.jsonl").write_text("{}\n")
    return die_once(task)


def print_and_wait(task: dict[str, Any]) -> dict[str, Any]:
    """Return the output of a cell that runs until it is cancelled."""
    Path(task["cell"], "coming").mkdir(parents=True)
    return wait_for_end(task)


def wait_for_end(task: dict[str, Any]) -> dict[str, Any]:
    """Run a cell until it is cancelled."""
    from qoslab.run.events import RunInterrupted

    cluster_worker._EXIT_STACKS.wait()
    raise RunInterrupted


def send_files(files: dict[str, bytes], task: dict[str, Any]) -> dict[str, Any]:
    """Return these files of a cell."""
    import io
    import zipfile

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return {"record": pass_cell(task)["record"], "files": content.getvalue()}


def send_too_many_files(task: dict[str, Any]) -> dict[str, Any]:
    """Return more files than a cell has."""
    return send_files({f"{number}": b"" for number in range(101)}, task)


def send_large_file(task: dict[str, Any]) -> dict[str, Any]:
    """Return a file that is large once it is unpacked."""
    return send_files({"large": bytes(2 * 10**6)}, task)


def send_no_archive(task: dict[str, Any]) -> dict[str, Any]:
    """Return bytes that are no archive."""
    return {"record": pass_cell(task)["record"], "files": b"no archive"}


def take_time(task: dict[str, Any]) -> dict[str, Any]:
    """Run longer than the scheduler."""
    time.sleep(2)
    return pass_cell(task)
