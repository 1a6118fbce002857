"""The folder of a cell in a run folder: paths, writing once, reading back."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from qoslab.errors import UserError
from qoslab.model.experiment import Experiment
from qoslab.results.checksums import (
    CELL_RECORD,
    FileSeal,
    difference,
    differences,
    seal_of,
    sealed,
    seals,
)
from qoslab.results.file_access import (
    append,
    read_bytes,
    replace,
    sync_all,
    sync_names,
    write_once,
    writing,
)
from qoslab.results.record_files import RECORD_MOST, check_experiment, json_of, parsed_as, read_sealed, read_whole
from qoslab.results.records import CellRecord
from qoslab.results.redaction import KNOWN
from qoslab.schema import CellIdentity, Identified
from qoslab.traffic import Output


def _line(reply: dict[str, Any]) -> bytes:
    return (json.dumps(reply, separators=(",", ":")) + "\n").encode()


def file_word(command: str) -> str:
    """A show command as part of a file name: blanks become `-`, other odd characters `_`."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", re.sub(r"\s+", "-", command.strip()))


class Cell(Identified):
    """The folder of a cell: `cells/ARM/REPETITION` or `cells/ARM/PARAMETERS/REPETITION`.

    Each further attempt has a folder of its own: `REPETITION.2`, `REPETITION.3`, …
    """

    def __init__(
        self,
        path: Path,
        identity: CellIdentity,
        attempt: int = 1,
        *,
        coming: Path | None = None,
        sent: bool = False,
    ) -> None:
        """`coming`: where others look for what comes, if not in this folder. One that is `sent` to its run's folder is
        synced there."""
        self.path = path
        self.identity = identity
        self.attempt = attempt
        self._coming = coming
        self._sent = sent

    @property
    def experiment_file(self) -> Path:
        """The experiment that the cell is: one arm, all values in their places."""
        return self.path / "experiment.json"

    def write_experiment(self, experiment: Experiment) -> None:
        """Keep the experiment that the cell is."""
        self.write(self.experiment_file, json_of(experiment))

    def experiment_content(self) -> bytes:
        """Return the source of `experiment`."""
        return read_bytes(self.experiment_file, RECORD_MOST)

    def experiment(self) -> Experiment:
        """Read the experiment that the cell is."""
        found = parsed_as(Experiment, self.experiment_file, self.experiment_content())
        check_experiment(self.experiment_file, found)
        return found

    def configuration(self, name: str) -> Path:
        """`R1.ios`, `R1.engine.json`, `R1.before.ios`, `R1.after.ios`."""
        return self.path / "config" / name

    def configurations(self, routers: Iterable[str]) -> dict[str, str]:
        """The configurations that these routers were given; those that were given none are left out."""
        files = {name: self.configuration(f"{name}.ios") for name in routers}
        return {name: self.text(file) for name, file in files.items() if file.exists()}

    def given(self, device: str) -> Path:
        """The file of the configuration that a router was given: IOS commands, or tc commands."""
        tc = self.configuration(f"{device}.tc")
        return tc if tc.exists() else self.configuration(f"{device}.ios")

    def ansible(self, intent: str) -> Path:
        """Folder of what ansible-runner left of a playbook; made where it is missing."""
        folder = self.path / "ansible" / intent
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def observation(self, device: str, moment: str, command: str) -> Path:
        """Base path of a show command's output; `.txt` is raw, `.json` parsed."""
        return self.path / "observations" / device / f"{file_word(moment)}.{file_word(command)}"

    def traffic(self, flow: str, side: str, suffix: str) -> Path:
        """Raw output of a traffic tool; `side` is `client` or `server`, the suffix is the tool's, or `err`."""
        return self.path / "traffic" / f"{flow}.{side}.{suffix}"

    def simulated_traffic(self, flow: str) -> Path:
        """Return the simulator's values of a flow; see `qoslab.simulation.result`."""
        return self.path / "traffic" / f"{flow}.simulated.json"

    def simulated_host(self, host: str) -> Path:
        """Return the simulator's values of a host's TCP."""
        return self.path / "hosts" / f"{host}.simulated.json"

    def simulated_hosts(self) -> list[str]:
        """Hosts of which the simulator said something."""
        suffix = ".simulated.json"
        return sorted(file.name.removesuffix(suffix) for file in (self.path / "hosts").glob(f"*{suffix}"))

    def capture(self, point: str) -> Path:
        """The pcapng file of a capture point; its folder is made where it is missing."""
        file = self.path / "captures" / f"{point}.pcapng"
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def counters(self, device: str) -> Path:
        """The control socket's `counters` replies of a router, one a line."""
        return self.path / "counters" / f"{device}.jsonl"

    def readings(self, device: str) -> Path:
        """The show commands by which a router's counters were read, one a line."""
        return self.path / "readings" / f"{device}.jsonl"

    def write_readings(self, device: str, readings: Iterable[dict[str, Any]]) -> None:
        """Write all readings of a router."""
        self.write(self.readings(device), b"".join(map(_line, readings)).decode())

    @property
    def coming(self) -> Path:
        """Folder of what comes while a cell runs and is written whole when it is over, for those who watch.

        `readings/R1.jsonl` with what a real router printed, `counters/R1.jsonl` with what a simulated one counted. It
        is gone with `whole`, but of a cell that broke off.
        """
        return self._coming or self.path / "coming"

    def append_reading(self, device: str, reading: dict[str, Any]) -> None:
        """Add a show command that was just taken to what comes."""
        line = KNOWN.hidden(_line(reading).decode()).encode()
        append(self.coming / "readings" / f"{device}.jsonl", line)

    def coming_counters(self) -> Path:
        """Folder of the counters that come, a file for each router; made where it is missing."""
        folder = self.coming / "counters"
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder.resolve()

    def whole(self) -> None:
        """Write the given bytes as a whole."""
        shutil.rmtree(self.coming, ignore_errors=True)

    def devices_with_readings(self) -> list[str]:
        """Routers whose counters were read with show commands."""
        return sorted(file.stem for file in (self.path / "readings").glob("*.jsonl"))

    def read_readings(self, device: str) -> Iterator[dict[str, Any]]:
        """Return the content written by `write_readings`."""
        return self._objects(self.readings(device))

    def host_counters(self, host: str) -> tuple[Path, Path]:
        """Return the file of a host's kernel counters before and after traffic: `/proc/net/snmp`, then `netstat`."""
        before, after = (self.path / "hosts" / f"{host}.{moment}.txt" for moment in ("before", "after"))
        return before, after

    def host_cards(self, host: str) -> Path:
        """Return the file of interface counters of a host before and after the traffic."""
        return self.path / "hosts" / f"{host}.interfaces.json"

    def hosts_with_cards(self) -> list[str]:
        """Hosts of which that was kept."""
        suffix = ".interfaces.json"
        return sorted(file.name.removesuffix(suffix) for file in (self.path / "hosts").glob(f"*{suffix}"))

    def hosts_with_counters(self) -> list[str]:
        """Hosts whose counters were kept to the end."""
        suffix = ".after.txt"
        return sorted(file.name.removesuffix(suffix) for file in (self.path / "hosts").glob(f"*{suffix}"))

    def write(self, path: Path, content: str | bytes) -> None:
        """Write one of the files above; `UserError` where it is there already or the disk is full.

        A text is written without the secrets that are known.
        """
        write_once(path, KNOWN.hidden(content).encode() if isinstance(content, str) else content)

    def append_counters(self, device: str, reply: dict[str, Any]) -> None:
        """Add a `counters` reply."""
        append(self.counters(device), _line(reply))
        if self._coming is not None:
            append(self._coming / "counters" / f"{device}.jsonl", _line(reply))

    def write_counters(self, device: str, replies: Iterable[dict[str, Any]]) -> None:
        """Write all `counters` replies."""
        self.write(self.counters(device), b"".join(map(_line, replies)))

    def read_output(self, flow: str, suffix: str, side: str) -> Output:
        """Return the output of one side of a traffic tool."""
        errors = self.traffic(flow, side, "err")
        return Output(
            stdout=read_whole(self.traffic(flow, side, suffix)), stderr=read_whole(errors) if errors.exists() else ""
        )

    @property
    def record_file(self) -> Path:
        """Return how the cell went, and what is in all its other files."""
        return self.path / CELL_RECORD

    def write_record(self, record: CellRecord) -> CellRecord:
        """Write `cell.json`, the last thing of a cell, and return it with the seals of all other files.

        It is there once all it names would outlast a loss of power, and is whole then.
        """
        with writing(self.record_file):
            if self.record_file.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self.record_file))
            record = record.model_copy(update={"files": seals(self.path)})
        if self._sent:
            write_once(self.record_file, sealed(json_of(record)))
        else:
            sync_all(self.path)
            replace(self.record_file, sealed(json_of(record)))
        return record

    def record(self) -> CellRecord:
        """Read `cell.json`; `DamageError` where it is not what was written."""
        return parsed_as(CellRecord, self.record_file, read_sealed(self.record_file, RECORD_MOST))

    def sync_place(self) -> None:
        """Have the names of its folder, and of all around it up to the run's, outlast a loss of power."""
        sync_names(self.path, 2 + self.identity.folder.count("/"))

    def record_seal(self) -> FileSeal | None:
        """The seal of `cell.json`, for the manifest; None where there is none."""
        try:
            return seal_of(self.record_file)
        except OSError:
            return None

    def damage(self, written: FileSeal | None = None) -> tuple[str, ...]:
        """Return how the cell's files differ from what was written, each named; empty where nothing does.

        `written` is what the manifest says of `cell.json`.
        """
        if written is not None and (told := difference(self.record_file, CELL_RECORD, written)):
            return (told,)
        try:
            record = self.record()
        except UserError as error:
            return (error.message.replace(str(self.record_file), CELL_RECORD),)
        return tuple(differences(self.path, record.files))

    def devices_with_counters(self) -> list[str]:
        """Routers whose counters were kept."""
        return sorted(file.stem for file in (self.path / "counters").glob("*.jsonl"))

    def counter_replies(self, device: str) -> Iterator[dict[str, Any]]:
        """The kept replies in order."""
        return (reply for reply in self._objects(self.counters(device)) if reply.get("ok") is True)

    def _objects(self, path: Path) -> Iterator[dict[str, Any]]:
        """The JSON objects of a file with one in each line."""
        for number, line in enumerate(read_whole(path).splitlines(), start=1):
            try:
                reply = json.loads(line)
            except ValueError as error:
                raise UserError(f"{path}:{number}: no JSON: {error}", hint="the file was changed or damaged") from error
            except RecursionError as error:
                raise UserError(f"{path}:{number}: nested too deeply", hint="the file was changed") from error
            if not isinstance(reply, dict):
                raise UserError(f"{path}:{number}: found no JSON object", hint="the file was changed or damaged")
            yield reply

    def text(self, path: Path) -> str:
        """The text of one of the cell's files."""
        return read_whole(path)

    def parsed(self, device: str, moment: str, command: str) -> dict[str, Any] | None:
        """A show command as Genie parsed it; None where it did not, `UserError` where the file is damaged."""
        path = self.observation(device, moment, command)
        path = path.with_name(path.name + ".json")
        if not path.exists():
            return None
        try:
            content = json.loads(read_whole(path))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}: no JSON: {error}", hint="the file was changed or damaged") from error
        if not isinstance(content, dict):
            raise UserError(f"{path}: found no JSON object", hint="the file was changed or damaged")
        return None if "unparsed" in content else content
