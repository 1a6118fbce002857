"""Folder of a cell in a run folder: paths, and writing each file once."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from qoslab.model.experiment import Experiment
from qoslab.results.cell_files import EXPERIMENT, CellFiles, capture_file, observation_file, traffic_file
from qoslab.results.file_access import append, convert_write_errors, replace, sync_folder, sync_names, write_once
from qoslab.results.records import CellRecord
from qoslab.results.redaction import KNOWN
from qoslab.results.sealed_files import CELL_RECORD, add_seal, record_json, seals
from qoslab.schema import CellIdentified, CellIdentity


def _line(content: object) -> bytes:
    # Indented, it would be written by the slow encoder in Python.
    return (json.dumps(content, separators=(",", ":")) + "\n").encode()


class Cell(CellIdentified):
    """Folder of a cell: `cells/ARM/REPETITION` or `cells/ARM/PARAMETERS/REPETITION`.

    Each further attempt has its own folder: `REPETITION.2`, `REPETITION.3`, …
    """

    def __init__(
        self, path: Path, identity: CellIdentity, attempt: int = 1, *, coming: Path | None = None, sent: bool = False
    ) -> None:
        """Create it. `coming` is the folder for viewers of incoming data, if not in this folder. A cell with `sent` is
        sent to its run's folder later, and is synced there.
        """
        self.path = path
        self.identity = identity
        self.attempt = attempt
        self._coming = coming
        self._sent = sent

    @property
    def draft(self) -> Path:
        """Folder next to its own for a cell that is renamed when it is complete."""
        return self.path.with_name(f".{self.path.name}.draft")

    @property
    def experiment_file(self) -> Path:
        """File of the cell's experiment: one arm, with all parameter values filled in."""
        return self.path / EXPERIMENT

    def write_experiment(self, experiment: Experiment) -> None:
        """Save the experiment of the cell."""
        self.write(self.experiment_file, record_json(experiment))

    def configuration(self, name: str) -> Path:
        """Return the file of a configuration: `R1.ios`, `R1.engine.json`, `R1.before.ios` or `R1.after.ios`."""
        return self.path / "config" / name

    def observation(self, device: str, moment: str, command: str) -> Path:
        """Return the path of a show command's output without its suffix: `.txt` for raw output, `.json` for parsed
        output.
        """
        return self.path / observation_file(device, moment, command)

    def traffic(self, flow: str, side: str, suffix: str) -> Path:
        """Return the file of a traffic tool's raw output; `side` is `client` or `server`, `suffix` is the tool's, or
        `err`.
        """
        return self.path / traffic_file(flow, side, suffix)

    def simulated_traffic(self, flow: str) -> Path:
        """Return the file of the simulator's values of a flow; see `qoslab.simulation.result`."""
        return self.path / "traffic" / f"{flow}.simulated.json"

    def simulated_host(self, host: str) -> Path:
        """Return the file of the simulator's values of a host's TCP."""
        return self.path / "hosts" / f"{host}.simulated.json"

    def capture(self, point: str) -> Path:
        """Return the pcapng file of a capture point; its folder is created if missing."""
        file = self.path / capture_file(point)
        with convert_write_errors(file):
            file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def counters(self, device: str) -> Path:
        """Return the file of a router's `counters` replies from the control socket, one a line."""
        return self.path / "counters" / f"{device}.jsonl"

    def readings(self, device: str) -> Path:
        """Return the file of the show commands that read a router's counters, one a line."""
        return self.path / "readings" / f"{device}.jsonl"

    def write_readings(self, device: str, readings: Iterable[dict[str, Any]]) -> None:
        """Write all readings of a router."""
        self.write(self.readings(device), b"".join(map(_line, readings)).decode())

    @property
    def incoming_folder(self) -> Path:
        """Folder of incoming data while a cell runs, for viewers; the data is written as a whole when the cell is over.

        It has `readings/R1.jsonl` with the output of a real router, and `counters/R1.jsonl` with the counters of a
        simulated one. `whole` removes it; it remains only for an interrupted cell.
        """
        return self._coming or self.path / "coming"

    def append_reading(self, device: str, reading: dict[str, Any]) -> None:
        """Add a show command to the incoming data."""
        line = KNOWN.hidden(_line(reading).decode()).encode()
        append(self.incoming_folder / "readings" / f"{device}.jsonl", line)

    def coming_counters(self) -> Path:
        """Return the folder of incoming counters, with a file for each router; the first write creates it."""
        return (self.incoming_folder / "counters").resolve()

    def remove_incoming(self) -> None:
        """Remove the incoming data, since its files have been written as a whole."""
        shutil.rmtree(self.incoming_folder, ignore_errors=True)

    def host_counters(self, host: str) -> tuple[Path, Path]:
        """Return the files of a host's kernel counters before and after the traffic: `/proc/net/snmp`,
        then `netstat`.
        """
        before, after = (self.path / "hosts" / f"{host}.{moment}.txt" for moment in ("before", "after"))
        return before, after

    def host_cards(self, host: str) -> Path:
        """Return the file of a host's interface counters before and after the traffic."""
        return self.path / "hosts" / f"{host}.interfaces.json"

    def write(self, path: Path, content: str | bytes) -> None:
        """Write one of the cell's files. Raise `UserError` if the file exists or the disk is full.

        Known secrets are removed from text.
        """
        write_once(path, KNOWN.hidden(content).encode() if isinstance(content, str) else content)

    def write_json(self, path: Path, content: object) -> None:
        """Write one of the cell's files as JSON in one line."""
        self.write(path, _line(content).decode())

    def append_counters(self, device: str, reply: dict[str, Any]) -> None:
        """Add a `counters` reply."""
        append(self.counters(device), _line(reply))
        if self._coming is not None:
            append(self._coming / "counters" / f"{device}.jsonl", _line(reply))

    def write_counters(self, device: str, replies: Iterable[dict[str, Any]]) -> None:
        """Write all `counters` replies."""
        self.write(self.counters(device), b"".join(map(_line, replies)))

    @property
    def record_file(self) -> Path:
        """File of the cell's record, which has the seals of all its other files."""
        return self.path / CELL_RECORD

    def write_record(self, record: CellRecord) -> CellRecord:
        """Write `cell.json`, the last file of a cell, and return the record with the seals of all other files.

        The file is written as a whole, after all files that it names have been synced.
        """
        with convert_write_errors(self.record_file):
            if self.record_file.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self.record_file))
            record = record.model_copy(update={"files": seals(self.path)})
        if self._sent:
            write_once(self.record_file, add_seal(record_json(record)))
        else:
            sync_folder(self.path)
            replace(self.record_file, add_seal(record_json(record)))
        return record

    def files(self) -> CellFiles:
        """Return the content of the cell's files, for readers."""
        return CellFiles(self.path, self.identity)

    def sync_place(self) -> None:
        """Sync its folder, and all parent folders up to the run's, so that the names survive a power failure."""
        sync_names(self.path, 2 + self.identity.folder.count("/"))
