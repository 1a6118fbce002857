"""Content of a cell's files as plain values, without paths, for readers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, MutableMapping
from functools import cached_property
from pathlib import Path
from typing import Any

from qoslab.errors import UserError
from qoslab.model.experiment import Experiment
from qoslab.results.records import CellRecord
from qoslab.results.sealed_files import (
    CELL_RECORD,
    RECORD_MOST,
    TEXT_MOST,
    FileSeal,
    as_text,
    compute_seal,
    content_difference,
    difference,
    differences,
    parse_experiment,
    parse_record,
    read_bytes,
    read_record,
)
from qoslab.schema import CellIdentified, CellIdentity
from qoslab.traffic import FlowOutput

EXPERIMENT = "experiment.json"
"""File of the cell's experiment: one arm, with all parameter values filled in."""

_CHANGED = "the file was changed or damaged"
_SIMULATED = ".simulated.json"
_CARDS = ".interfaces.json"
_COUNTED = ".after.txt"


def file_word(command: str) -> str:
    """Return a show command as part of a file name: blanks become `-`, other special characters `_`."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", re.sub(r"\s+", "-", command.strip()))


def observation_file(device: str, moment: str, command: str) -> str:
    """Return the file name of a show command's output within a cell's folder, without `.txt` (raw) or
    `.json` (parsed).
    """
    return f"observations/{device}/{file_word(moment)}.{file_word(command)}"


def traffic_file(flow: str, side: str, suffix: str) -> str:
    """Return the file name of one side of a traffic tool's output within a cell's folder."""
    return f"traffic/{flow}.{side}.{suffix}"


def capture_file(point: str) -> str:
    """Return the file name of a capture point's pcapng file within a cell's folder."""
    return f"captures/{point}.pcapng"


def check_cell(folder: Path, written: FileSeal | None = None) -> tuple[CellRecord | None, tuple[str, ...]]:
    """Return a cell's record, and the differences of its files from their seals, by file; empty if there are none.

    `written` is the seal of `cell.json` in the manifest. The record is None if `cell.json` is damaged.
    """
    file, problem = folder / CELL_RECORD, ""
    try:
        content = read_bytes(file, RECORD_MOST)
        if written is None or not content_difference(CELL_RECORD, content, written):
            record = parse_record(CellRecord, str(file), content)
            return record, tuple(differences(folder, record.files))
    except UserError as error:
        problem = error.message.replace(str(file), CELL_RECORD)
    damage = "" if written is None else difference(file, CELL_RECORD, written)
    return None, (damage or problem or f"{CELL_RECORD}: the file was replaced while it was read",)


class CellFiles(CellIdentified):
    """Content of the files of one cell. Each file is read once, on first use.

    The files have been compared with their seals before (`RunFolder.open`). File names are relative to the cell's
    folder; a `UserError` has the full path.
    """

    def __init__(self, folder: Path, identity: CellIdentity, record: CellRecord | None = None) -> None:
        """Create it; `record` is the content of `cell.json` if it was read before."""
        self.identity = identity
        self._folder = folder
        self._texts: dict[str, str] = {}
        self._record = record

    @property
    def path(self) -> Path:
        """Folder of the cell."""
        return self._folder

    @cached_property
    def seal(self) -> FileSeal | None:
        """Seal of `cell.json` on first use; None if there is none."""
        try:
            return compute_seal(self._folder / CELL_RECORD)
        except OSError:
            return None

    def has(self, name: str) -> bool:
        """Return whether there is such a file."""
        return name in self._texts or (self._folder / name).exists()

    def text(self, name: str) -> str:
        """Return the text of a file. Raise `UserError` if it cannot be read or is too large."""
        if name not in self._texts:
            self._texts[name] = as_text(read_bytes(self._folder / name, TEXT_MOST))
        return self._texts[name]

    def forget(self) -> None:
        """Free the memory of the texts; they are read again on use."""
        self._texts.clear()

    def _text_if_any(self, name: str) -> str | None:
        return self.text(name) if self.has(name) else None

    def label(self, name: str) -> str:
        """Return the name of a file for messages, or that of the folder if `name` is empty."""
        return f"{self._folder}/{name}"

    def record(self) -> CellRecord:
        """Return `cell.json`. Raise `DamageError` if it has changed since it was written."""
        if self._record is None:
            self._record = read_record(CellRecord, self._folder / CELL_RECORD, RECORD_MOST)
        return self._record

    def experiment_content(self) -> bytes:
        """Return the cell's experiment as JSON text."""
        return read_bytes(self._folder / EXPERIMENT, RECORD_MOST)

    def experiment(self, known: MutableMapping[bytes, Experiment] | None = None) -> Experiment:
        """Return the cell's experiment. `known` are experiments of other cells by content, since many cells have the
        same.
        """
        content = self.experiment_content()
        found = None if known is None else known.get(content)
        if found is None:
            found = parse_experiment(self.label(EXPERIMENT), content)
            if known is not None:
                known[content] = found
        return found

    def capture(self, point: str) -> Path:
        """Return the pcapng file of a capture point, for the program that reads it."""
        return self._folder / capture_file(point)

    def captures(self) -> dict[str, str]:
        """Return the capture points with a pcapng file, and the file's name within the cell's folder."""
        return {point: capture_file(point) for point in self._file_stems("captures", ".pcapng")}

    def configured_devices(self) -> list[str]:
        """Devices with a configuration, given or read."""
        return sorted({file.name.split(".")[0] for file in (self._folder / "config").glob("*")})

    def given_configuration(self, device: str) -> str:
        """Return the given configuration of a device: tc commands, or IOS commands."""
        return self.text(self.given_file(device))

    def given_file(self, device: str) -> str:
        """Return the file of the given configuration of a device."""
        tc = f"config/{device}.tc"
        return tc if self.has(tc) else f"config/{device}.ios"

    def scenario(self) -> str | None:
        """Return the simulated scenario as JSON text; None if the cell was not simulated."""
        return self._text_if_any("config/scenario.json")

    def kernel_configuration(self, router: str) -> str | None:
        """Return the applied configuration of a router's kernel, as JSON text; None if there is none."""
        return self._text_if_any(f"config/{router}.tc.json")

    def configurations(self, routers: Iterable[str]) -> dict[str, str]:
        """Return the given configurations of these routers, without routers that were given none."""
        names = {router: f"config/{router}.ios" for router in routers}
        return {router: self.text(name) for router, name in names.items() if self.has(name)}

    def simulated_flow(self, flow: str) -> str | None:
        """Return the simulator's values of a flow; None if there are none."""
        return self._text_if_any(f"traffic/{flow}{_SIMULATED}")

    def simulated_hosts(self) -> Iterator[tuple[str, str, str]]:
        """Yield each host with values from the simulator, their text, and the name of their file."""
        for host in self._file_stems("hosts", _SIMULATED):
            name = f"{host}{_SIMULATED}"
            yield host, self.text(f"hosts/{name}"), name

    def outputs(self, flow: str, suffix: str) -> tuple[FlowOutput, FlowOutput] | None:
        """Return the output of the client and the server of a traffic tool; None if one of them is missing."""
        sides = "client", "server"
        if not all(self.has(traffic_file(flow, side, suffix)) for side in sides):
            return None
        client, server = (self.output(flow, suffix, side) for side in sides)
        return client, server

    def output(self, flow: str, suffix: str, side: str) -> FlowOutput:
        """Return the output of one side of a traffic tool."""
        errors = traffic_file(flow, side, "err")
        return FlowOutput(stdout=self.text(traffic_file(flow, side, suffix)), stderr=self._text_if_any(errors) or "")

    def probe(self, probe: str) -> str | None:
        """Return the values of a probe as JSON text; None if there are none."""
        return self._text_if_any(f"probes/{probe}.json")

    def host_counters(self) -> Iterator[tuple[str, tuple[str, str], tuple[str, str]]]:
        """Yield each host with kernel counters: its name, and text and file name before and after the traffic."""
        for host in self._file_stems("hosts", _COUNTED):
            before, after = (f"{host}.{moment}.txt" for moment in ("before", "after"))
            yield host, (self.text(f"hosts/{before}"), before), (self.text(f"hosts/{after}"), after)

    def interface_counters(self) -> Iterator[tuple[str, str]]:
        """Yield each host with interface counters, and their JSON text."""
        for host in self._file_stems("hosts", _CARDS):
            yield host, self.text(f"hosts/{host}{_CARDS}")

    def devices_with_counters(self) -> list[str]:
        """Return the routers with saved counters."""
        return self._file_stems("counters", ".jsonl")

    def counter_replies(self, device: str) -> Iterator[dict[str, Any]]:
        """Return the `counters` replies of a router's control socket, in order."""
        return (reply for reply in self._objects(f"counters/{device}.jsonl") if reply.get("ok") is True)

    def devices_with_readings(self) -> list[str]:
        """Return the routers with counters from show commands."""
        return self._file_stems("readings", ".jsonl")

    def readings(self, device: str) -> Iterator[dict[str, Any]]:
        """Return the show commands that read a router's counters."""
        return self._objects(f"readings/{device}.jsonl")

    def parsed_output(self, device: str, moment: str, command: str) -> dict[str, Any] | None:
        """Return a show command in Genie's parsed form; None if it was not parsed. Raise `UserError` if the file is
        damaged.
        """
        name = f"{observation_file(device, moment, command)}.json"
        if not self.has(name):
            return None
        try:
            content = json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{self.label(name)}: not valid JSON: {error}", hint=_CHANGED) from error
        if not isinstance(content, dict):
            raise UserError(f"{self.label(name)}: found no JSON object", hint=_CHANGED)
        return None if "unparsed" in content else content

    def _file_stems(self, folder: str, suffix: str) -> list[str]:
        """Return the names of a folder's files with this ending, without the ending."""
        return sorted(file.name.removesuffix(suffix) for file in (self._folder / folder).glob(f"*{suffix}"))

    def _objects(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects of a file with one on each line."""
        path = self.label(name)
        for number, line in enumerate(self.text(name).splitlines(), start=1):
            try:
                reply = json.loads(line)
            except ValueError as error:
                raise UserError(f"{path}:{number}: not valid JSON: {error}", hint=_CHANGED) from error
            except RecursionError as error:
                raise UserError(f"{path}:{number}: nested too deeply", hint="the file was changed") from error
            if not isinstance(reply, dict):
                raise UserError(f"{path}:{number}: found no JSON object", hint=_CHANGED)
            yield reply
