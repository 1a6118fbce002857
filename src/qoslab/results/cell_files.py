"""Content of a cell's files, for readers: plain values by what they are of, no paths."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, MutableMapping
from functools import cached_property
from pathlib import Path
from typing import Any

from qoslab.errors import UserError
from qoslab.model.experiment import Experiment
from qoslab.results.checksums import CELL_RECORD, FileSeal, seal_of
from qoslab.results.file_access import as_text, read_bytes
from qoslab.results.record_files import RECORD_MOST, TEXT_MOST, experiment_of, read_record
from qoslab.results.records import CellRecord
from qoslab.schema import CellIdentity, Identified
from qoslab.traffic import Output

EXPERIMENT = "experiment.json"
"""The experiment that the cell is: one arm, all values in their places."""

_CHANGED = "the file was changed or damaged"
_SIMULATED = ".simulated.json"
_CARDS = ".interfaces.json"
_COUNTED = ".after.txt"


def file_word(command: str) -> str:
    """A show command as part of a file name: blanks become `-`, other odd characters `_`."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", re.sub(r"\s+", "-", command.strip()))


def observation_file(device: str, moment: str, command: str) -> str:
    """Name of a show command's output within a cell's folder, without `.txt` (raw) or `.json` (parsed)."""
    return f"observations/{device}/{file_word(moment)}.{file_word(command)}"


def traffic_file(flow: str, side: str, suffix: str) -> str:
    """Name of the output of one side of a traffic tool within a cell's folder."""
    return f"traffic/{flow}.{side}.{suffix}"


def capture_file(point: str) -> str:
    """Name of the pcapng file of a capture point within a cell's folder."""
    return f"captures/{point}.pcapng"


class CellFiles(Identified):
    """Content of the files of one cell. Each file is read when it is first asked for, and once.

    Whether the files are what was written is compared before (`RunFolder.cells`). Names are those within the cell's
    folder; `UserError` names the file by its path.
    """

    def __init__(self, folder: Path, identity: CellIdentity) -> None:
        self.identity = identity
        self._folder = folder
        self._texts: dict[str, str] = {}
        self._record: CellRecord | None = None

    @property
    def path(self) -> Path:
        """The cell's folder."""
        return self._folder

    @cached_property
    def seal(self) -> FileSeal | None:
        """The seal of `cell.json` when it was first asked for; None if there is none."""
        try:
            return seal_of(self._folder / CELL_RECORD)
        except OSError:
            return None

    def has(self, name: str) -> bool:
        """Return whether there is such a file."""
        return name in self._texts or (self._folder / name).exists()

    def text(self, name: str) -> str:
        """The text of a file; `UserError` if it cannot be read or is too large."""
        if name not in self._texts:
            self._texts[name] = as_text(read_bytes(self._folder / name, TEXT_MOST))
        return self._texts[name]

    def label(self, name: str) -> str:
        """A file as messages name it; the folder where there is no name."""
        return f"{self._folder}/{name}"

    def record(self) -> CellRecord:
        """`cell.json`; `DamageError` if it is not what was written."""
        if self._record is None:
            self._record = read_record(CellRecord, self._folder / CELL_RECORD, RECORD_MOST)
        return self._record

    def experiment(self, known: MutableMapping[bytes, Experiment] | None = None) -> Experiment:
        """The experiment that the cell is. `known` are those of other cells, by content: many are alike."""
        content = read_bytes(self._folder / EXPERIMENT, RECORD_MOST)
        found = None if known is None else known.get(content)
        if found is None:
            found = experiment_of(self.label(EXPERIMENT), content)
            if known is not None:
                known[content] = found
        return found

    def capture(self, point: str) -> Path:
        """The pcapng file of a capture point, for the program that reads it."""
        return self._folder / capture_file(point)

    def configured_devices(self) -> list[str]:
        """Devices of which there is a configuration, as it was given or read."""
        return sorted({file.name.split(".")[0] for file in (self._folder / "config").glob("*")})

    def given(self, device: str) -> str:
        """The configuration that a device was given: tc commands, or IOS commands."""
        tc = f"config/{device}.tc"
        return self.text(tc if self.has(tc) else f"config/{device}.ios")

    def kernel_configuration(self, router: str) -> str | None:
        """Return the applied configuration of a router's kernel, as JSON text; None if there is none."""
        name = f"config/{router}.tc.json"
        return self.text(name) if self.has(name) else None

    def configurations(self, routers: Iterable[str]) -> dict[str, str]:
        """The configurations that these routers were given; those that were given none are left out."""
        names = {router: f"config/{router}.ios" for router in routers}
        return {router: self.text(name) for router, name in names.items() if self.has(name)}

    def simulated_flow(self, flow: str) -> str | None:
        """The simulator's values of a flow; None if it left none."""
        name = f"traffic/{flow}{_SIMULATED}"
        return self.text(name) if self.has(name) else None

    def simulated_hosts(self) -> Iterator[tuple[str, str, str]]:
        """Each host of which the simulator said something, with the text and its file's name."""
        for host in self._named("hosts", _SIMULATED):
            name = f"{host}{_SIMULATED}"
            yield host, self.text(f"hosts/{name}"), name

    def outputs(self, flow: str, suffix: str) -> tuple[Output, Output] | None:
        """The output of the client and the server of a traffic tool; None if one of them left none."""
        sides = "client", "server"
        if not all(self.has(traffic_file(flow, side, suffix)) for side in sides):
            return None
        client, server = (self.output(flow, suffix, side) for side in sides)
        return client, server

    def output(self, flow: str, suffix: str, side: str) -> Output:
        """The output of one side of a traffic tool."""
        errors = traffic_file(flow, side, "err")
        stderr = self.text(errors) if self.has(errors) else ""
        return Output(stdout=self.text(traffic_file(flow, side, suffix)), stderr=stderr)

    def probe(self, probe: str) -> str | None:
        """The values of a probe, as JSON text; None if it left none."""
        name = f"probes/{probe}.json"
        return self.text(name) if self.has(name) else None

    def host_counters(self) -> Iterator[tuple[str, tuple[str, str], tuple[str, str]]]:
        """Each host whose kernel counters were read: its name, and text and file name before and after the traffic."""
        for host in self._named("hosts", _COUNTED):
            before, after = (f"{host}.{moment}.txt" for moment in ("before", "after"))
            yield host, (self.text(f"hosts/{before}"), before), (self.text(f"hosts/{after}"), after)

    def interface_counters(self) -> Iterator[tuple[str, str]]:
        """Each host whose interface counters were read, with their JSON text."""
        for host in self._named("hosts", _CARDS):
            yield host, self.text(f"hosts/{host}{_CARDS}")

    def devices_with_counters(self) -> list[str]:
        """Routers whose counters were kept."""
        return self._named("counters", ".jsonl")

    def counter_replies(self, device: str) -> Iterator[dict[str, Any]]:
        """The control socket's `counters` replies of a router, in order."""
        return (reply for reply in self._objects(f"counters/{device}.jsonl") if reply.get("ok") is True)

    def devices_with_readings(self) -> list[str]:
        """Routers whose counters were read with show commands."""
        return self._named("readings", ".jsonl")

    def readings(self, device: str) -> Iterator[dict[str, Any]]:
        """The show commands by which a router's counters were read."""
        return self._objects(f"readings/{device}.jsonl")

    def parsed(self, device: str, moment: str, command: str) -> dict[str, Any] | None:
        """A show command as Genie parsed it; None if it did not, `UserError` if the file is damaged."""
        name = f"{observation_file(device, moment, command)}.json"
        if not self.has(name):
            return None
        try:
            content = json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{self.label(name)}: no JSON: {error}", hint=_CHANGED) from error
        if not isinstance(content, dict):
            raise UserError(f"{self.label(name)}: found no JSON object", hint=_CHANGED)
        return None if "unparsed" in content else content

    def _named(self, folder: str, suffix: str) -> list[str]:
        """The files of a folder with an ending, without it."""
        return sorted(file.name.removesuffix(suffix) for file in (self._folder / folder).glob(f"*{suffix}"))

    def _objects(self, name: str) -> Iterator[dict[str, Any]]:
        """The JSON objects of a file with one in each line."""
        path = self.label(name)
        for number, line in enumerate(self.text(name).splitlines(), start=1):
            try:
                reply = json.loads(line)
            except ValueError as error:
                raise UserError(f"{path}:{number}: no JSON: {error}", hint=_CHANGED) from error
            except RecursionError as error:
                raise UserError(f"{path}:{number}: nested too deeply", hint="the file was changed") from error
            if not isinstance(reply, dict):
                raise UserError(f"{path}:{number}: found no JSON object", hint=_CHANGED)
            yield reply
