"""The run folder: paths, writing once, reading back."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ValidationError

from qoslab.errors import DamageError, UserError
from qoslab.model.experiment import Experiment
from qoslab.model.expressions import Value
from qoslab.model.limits import beyond
from qoslab.model.matrix import as_number
from qoslab.redaction import KNOWN
from qoslab.results.files import (
    append,
    read_bytes,
    read_text,
    replace,
    sync_all,
    sync_names,
    write_once,
    writing,
)
from qoslab.results.records import FORMAT, CellRecord, CellSummary, Manifest, RunOptions
from qoslab.results.seal import (
    CELL_RECORD,
    FileSeal,
    difference,
    differences,
    seal_of,
    sealed,
    seals,
    state_of,
    unsealed,
)
from qoslab.schema import CellIdentity, Identified
from qoslab.traffic import Output

LATEST = "latest"
MANIFEST = "manifest.json"
LOCK = ".lock"
"""Held by the process that works on a run."""
_TIME = "%Y%m%dT%H%M%SZ"
_RUN_NAME = re.compile(r"\d{8}T\d{6}Z(?:-\d+)?")
RECORD_MOST = 16 * 2**20
"""Bytes of a cell's records."""
MANIFEST_MOST = 512 * 2**20
TEXT_MOST = 256 * 2**20
"""Bytes of any other file that is read as a whole."""

_R = TypeVar("_R", bound=BaseModel)


def _json(record: BaseModel) -> bytes:
    return (record.model_dump_json(indent=2) + "\n").encode()


def _read_text(path: Path) -> str:
    return read_text(path, TEXT_MOST)


def _parsed(kind: type[_R], path: Path, text: bytes) -> _R:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        hint = "the file was changed or damaged"
        if first["type"] == "literal_error" and where.endswith(".platform"):
            hint += ", or the package that adds it is not installed"
        raise UserError(f"{path}: {where}: {first['msg']}", hint=hint) from error


def _check_limits(path: Path, record: BaseModel) -> None:
    """`UserError` for a quantity that no experiment may have: of a file it was refused before it was run."""
    for steps, told in beyond(record):
        raise UserError(f"{path}: {'.'.join(map(str, steps))}: {told}", hint="the file was changed or damaged")


def _read_sealed(path: Path, most: int) -> bytes:
    """A record without its seal; `DamageError` where that does not fit, `UserError` where it has another format."""
    text, whole = unsealed(read_bytes(path, most))
    if not whole:
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            _check_format(path, json.loads(text)["format"])  # what an older version wrote has no seal
        raise DamageError(
            f"{path}: found {len(text)} bytes that are not what was written: the seal in its first line "
            "(SHA-256 of the rest) is missing or another's",
            hint="copy the run again, if there is another copy; what was not kept, qoslab run --resume measures again",
        )
    return text


def _check_format(path: Path, found: object) -> None:
    """`UserError` where a record has another format than ours."""
    if found != FORMAT:
        newer = isinstance(found, int) and found > FORMAT
        raise UserError(
            f"{path}: found format {found}, expected {FORMAT}",
            hint="a newer qoslab wrote this run; use that one"
            if newer
            else "an older qoslab wrote it; run it again, or use that version for its report",
        )


def _formatted(path: Path, text: bytes) -> dict[str, Any]:
    """A JSON object whose `format` is ours; `UserError` otherwise."""
    try:
        content = json.loads(text)
        found = content["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(
            f"{path}: found no format version, expected {FORMAT}", hint="it is no record of a run"
        ) from error
    _check_format(path, found)
    return dict(content)


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
        self.write(self.experiment_file, _json(experiment))

    def experiment_content(self) -> bytes:
        """What `experiment` is made of."""
        return read_bytes(self.experiment_file, RECORD_MOST)

    def experiment(self) -> Experiment:
        """Read the experiment that the cell is."""
        found = _parsed(Experiment, self.experiment_file, self.experiment_content())
        _check_limits(self.experiment_file, found)
        return found

    def configuration(self, name: str) -> Path:
        """`R1.ios`, `R1.engine.json`, `R1.before.ios`, `R1.after.ios`."""
        return self.path / "config" / name

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
        """What the simulator says of a flow; see `qoslab.simulation.result`."""
        return self.path / "traffic" / f"{flow}.simulated.json"

    def simulated_host(self, host: str) -> Path:
        """What the simulator says of a host's TCP."""
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
        """What came is written whole."""
        shutil.rmtree(self.coming, ignore_errors=True)

    def devices_with_readings(self) -> list[str]:
        """Routers whose counters were read with show commands."""
        return sorted(file.stem for file in (self.path / "readings").glob("*.jsonl"))

    def read_readings(self, device: str) -> Iterator[dict[str, Any]]:
        """What `write_readings` kept."""
        return self._objects(self.readings(device))

    def host_counters(self, host: str) -> tuple[Path, Path]:
        """What the host's kernel counted before and after the traffic: `/proc/net/snmp`, then `netstat`."""
        before, after = (self.path / "hosts" / f"{host}.{moment}.txt" for moment in ("before", "after"))
        return before, after

    def host_cards(self, host: str) -> Path:
        """What the experiment's interfaces of a host counted before and after the traffic, by interface."""
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

    def write_output(self, flow: str, suffix: str, side: str, output: Output) -> None:
        """Keep what one side of a traffic tool printed."""
        self.write(self.traffic(flow, side, suffix), output.stdout)
        if output.stderr:
            self.write(self.traffic(flow, side, "err"), output.stderr)

    def read_output(self, flow: str, suffix: str, side: str) -> Output:
        """What `write_output` kept."""
        errors = self.traffic(flow, side, "err")
        return Output(
            stdout=_read_text(self.traffic(flow, side, suffix)), stderr=_read_text(errors) if errors.exists() else ""
        )

    @property
    def record_file(self) -> Path:
        """How the cell went, and what is in all its other files."""
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
            write_once(self.record_file, sealed(_json(record)))
        else:
            sync_all(self.path)
            replace(self.record_file, sealed(_json(record)))
        return record

    def record(self) -> CellRecord:
        """Read `cell.json`; `DamageError` where it is not what was written."""
        return _parsed(CellRecord, self.record_file, _read_sealed(self.record_file, RECORD_MOST))

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
        """How the cell's files differ from what was written, each named; empty where nothing does.

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
        for number, line in enumerate(_read_text(path).splitlines(), start=1):
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
        return _read_text(path)

    def parsed(self, device: str, moment: str, command: str) -> dict[str, Any] | None:
        """A show command as Genie parsed it; None where it did not, `UserError` where the file is damaged."""
        path = self.observation(device, moment, command)
        path = path.with_name(path.name + ".json")
        if not path.exists():
            return None
        try:
            content = json.loads(_read_text(path))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}: no JSON: {error}", hint="the file was changed or damaged") from error
        if not isinstance(content, dict):
            raise UserError(f"{path}: found no JSON object", hint="the file was changed or damaged")
        return None if "unparsed" in content else content


class RunFolder:
    """One run: `runs/EXPERIMENT/TIME`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._checked: dict[Path, tuple[object, tuple[str, ...]]] = {}
        """By cell, what its files were like when they were compared with what was written, and what was found."""

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @classmethod
    def create(cls, root: Path, experiment: str, now: datetime | None = None, *, private: bool = False) -> Self:
        """Make a new run's folder. Of two runs in the same second the later one gets `-2` appended.

        A `private` one, with configurations of somebody's routers, nobody else may enter, whatever the umask.
        """
        parent = root / experiment
        stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime(_TIME)
        with writing(parent / stamp):
            parent.mkdir(parents=True, exist_ok=True)
            for number in range(1, 1000):
                path = parent / (stamp if number == 1 else f"{stamp}-{number}")
                try:
                    path.mkdir(0o700 if private else 0o777)
                except FileExistsError:
                    continue
                return cls(path)
            raise FileExistsError(errno.EEXIST, "a thousand runs in one second")

    @contextmanager
    def working(self, options: RunOptions) -> Iterator[None]:
        """Keep others from working on this run meanwhile, and keep in `run.json` what was asked for.

        `UserError` where another process works on it.
        """
        path = self.path / "run.json"
        lock = self.path / LOCK
        with writing(lock):
            # A file and no folder: of a lock on a folder a network file system tells no other machine.
            held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UserError(
                    f"{self.path}: another process works on this run", hint="wait for its end, or interrupt it"
                ) from error
            except OSError as error:
                raise UserError(
                    f"{lock}: cannot be locked: {error.strerror}",
                    hint="have the file system's server keep locks, or run where the disk is this machine's own",
                ) from error
            replace(path, sealed(_json(options)))
            sync_names(self.path, 3)  # runs may be new, too
            yield
        finally:
            os.close(held)

    def worked_on(self) -> bool:
        """Whether a process works on this run now. One that begins at the very moment of the look is refused, so look
        seldom.
        """
        try:
            looked = os.open(self.path / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(looked, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(looked)
        return False

    def options(self) -> RunOptions:
        """What `run.json` keeps; `UserError` where it is missing, damaged, or of another format or shape."""
        path = self.path / "run.json"
        if not path.exists():
            if self.finished:
                self.manifest()  # refuses another format
            raise UserError(f"{self.path}: found no run.json, expected a run", hint="`qoslab list` shows the runs")
        text = _read_sealed(path, RECORD_MOST)
        _formatted(path, text)
        return _parsed(RunOptions, path, text)

    @property
    def finished(self) -> bool:
        """Whether it came to its manifest."""
        return (self.path / MANIFEST).exists()

    def cell(
        self, arm: str, repetition: int = 1, parameters: Mapping[str, Value] | None = None, attempt: int = 1
    ) -> Cell:
        """A cell's folder; it need not exist."""
        return self.cell_of(CellIdentity(arm, tuple((parameters or {}).items()), repetition), attempt)

    def cell_of(self, identity: CellIdentity, attempt: int = 1) -> Cell:
        """The folder of an attempt at a cell; it need not exist."""
        folder = identity.folder + ("" if attempt == 1 else f".{attempt}")
        return Cell(self.path / "cells" / folder, identity, attempt)

    def attempts(self, identity: CellIdentity) -> list[Cell]:
        """The attempts at a cell that there are, in order, finished or not."""
        found: list[Cell] = []
        for attempt in count(1):
            cell = self.cell_of(identity, attempt)
            if not cell.path.exists():
                return found
            found.append(cell)
        raise AssertionError("numbers do not end")

    def cells(self) -> list[Cell]:
        """The cells of the manifest that have a `cell.json` and are what was written: by arm, then parameters, then
        repetition.

        Of each cell it is the attempt that counts.
        """
        manifest = self.manifest()
        order = {arm.name: number for number, arm in enumerate(manifest.experiment.arms)}
        found = []
        for summary in manifest.cells:
            cell = self.summarised(summary)
            if cell.record_file.exists() and not self._damage(cell, summary):
                found.append(cell)
        return sorted(
            found,
            key=lambda cell: (
                order.get(cell.arm, len(order)),
                cell.arm,
                [(name, as_number(value)) for name, value in cell.identity.parameters],
                cell.repetition,
            ),
        )

    def summarised(self, summary: CellSummary) -> Cell:
        """The folder of the attempt at a cell that counts."""
        if not summary.folder:
            return self.cell_of(summary.identity)
        path = self.path / summary.folder
        attempt = path.name.partition(".")[2]
        return Cell(path, summary.identity, int(attempt) if attempt.isdigit() else 1)

    def write_experiment(self, text: str) -> None:
        """Keep the experiment file as it was given; one that differs from before as `experiment.2.yml`, …"""
        for number in count(1):
            path = self.path / ("experiment.yml" if number == 1 else f"experiment.{number}.yml")
            if not path.exists():
                replace(path, text.encode())
                return
            if _read_text(path) == text:
                return

    def experiment_text(self) -> str:
        """The experiment file as it was given last; empty where there is none.

        Of a run that came to its manifest it is one that this names.
        """
        named = self.manifest().files if self.finished else None
        files = [each for each in self.given() if named is None or each.name in named]
        return _read_text(files[-1]) if files else ""

    def given(self) -> list[Path]:
        """The experiment files as they were given, in order."""
        return sorted(self.path.glob("experiment*.yml"), key=lambda path: (len(path.name), path.name))

    def write_manifest(self, manifest: Manifest) -> None:
        """Write `manifest.json`, the last thing of a run; a resumed run replaces it."""
        path = self.path / MANIFEST
        with writing(path):
            files = {each.name: seal_of(each) for each in self.given()}
        replace(path, sealed(_json(manifest.model_copy(update={"files": files}))))

    def manifest(self) -> Manifest:
        """Read `manifest.json`; `UserError` where it is missing, damaged or of another format."""
        path = self.path / MANIFEST
        if not path.exists():
            raise UserError(
                f"{self.path}: found no manifest.json, expected a finished run",
                hint="the run broke off, or is still going; `qoslab list` shows the runs",
            )
        text = _read_sealed(path, MANIFEST_MOST)
        _formatted(path, text)
        found = _parsed(Manifest, path, text)
        _check_limits(path, found.experiment)
        return found

    def damaged(self) -> dict[str, tuple[str, ...]]:
        """How the cells of the manifest differ from what was written, by name; those that are whole are not in it.

        Of each cell it is the attempt that counts. One that never came to its record is not damaged.
        """
        found = {}
        for summary in self.manifest().cells:
            cell = self.summarised(summary)
            if (summary.record is not None or cell.record_file.exists()) and (damage := self._damage(cell, summary)):
                found[summary.name] = damage
        return found

    def set_aside(self, cell: Cell, why: tuple[str, ...]) -> None:
        """Take one of `cells` for damaged until its files change: what it says of itself fits nothing else."""
        self._checked[cell.path] = (self._checked[cell.path][0], why)

    def _damage(self, cell: Cell, summary: CellSummary) -> tuple[str, ...]:
        """As `Cell.damage`; what has not been touched since is not read again."""
        state = state_of(cell.path)
        known = self._checked.get(cell.path)
        if known is None or known[0] != (state, summary.record):
            self._checked[cell.path] = known = ((state, summary.record), cell.damage(summary.record))
        return known[1]

    @property
    def tables(self) -> Path:
        """Folder of the Parquet tables; see `qoslab.results.tables`."""
        return self.path / "tables"

    @property
    def report(self) -> Path:
        """The report."""
        return self.path / "report.html"

    def replace(self, name: str, content: str | bytes) -> Path:
        """Write a file that is computed from the rest, such as `comparison.csv`; it may be there already."""
        path = self.path / name
        replace(path, content.encode() if isinstance(content, str) else content)
        return path

    def publish(self) -> None:
        """Let `latest` name this run, unless it names a newer one. Safe while other runs do the same."""
        parent = self.path.parent
        link = parent / LATEST
        with writing(link):
            directory = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(directory, fcntl.LOCK_EX)
                if link.is_symlink() and _order(link.readlink().name) > _order(self.path.name):
                    return
                draft = parent / f".{LATEST}.{os.getpid()}"
                draft.unlink(missing_ok=True)
                draft.symlink_to(self.path.name)
                draft.replace(link)
            finally:
                os.close(directory)


def _order(name: str) -> tuple[str, int]:
    stamp, _, number = name.partition("-")
    return stamp, int(number) if number.isdigit() else 1


def runs(root: Path, experiment: str) -> list[RunFolder]:
    """The runs of an experiment, oldest first, unfinished ones included."""
    found = [path for path in (root / experiment).glob("*Z*") if path.is_dir() and _RUN_NAME.fullmatch(path.name)]
    return [RunFolder(path) for path in sorted(found, key=lambda path: _order(path.name))]


def _own(path: Path) -> RunFolder:
    """The run, if nothing in its folder leads out of it. A received run could show files of whoever reports on it."""
    for around, folders, files in os.walk(path):
        for name in (*folders, *files):
            mode = os.lstat(Path(around, name)).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                kind = "a symbolic link" if stat.S_ISLNK(mode) else "neither a file nor a folder"
                raise UserError(
                    f"{Path(around, name)}: found {kind}, expected what a run has written",
                    hint="nothing of a run is; remove it, or ask whoever sent the run",
                )
    return RunFolder(path)


def find_unfinished(root: Path, text: str | None = None) -> RunFolder:
    """The run to be resumed: a run's folder, an experiment's name (its newest run), nothing (the newest of all)."""
    if text is not None:
        for given in (Path(text), root / text):
            if any((given / name).exists() for name in ("run.json", MANIFEST)):
                return _own(given.resolve())
        found = runs(root, text)
    else:
        found = [run for parent in sorted(root.glob("*")) for run in runs(root, parent.name)]
    if not found:
        raise UserError(
            f"found no run{'' if text is None else f' {text!r}'} in {root}, expected the folder of a run or an "
            "experiment with one",
            hint="`qoslab list` shows the runs",
        )
    return _own(max(found, key=lambda run: _order(run.path.name)).path)


def find_run(root: Path, text: str | None = None) -> RunFolder:
    """The run that a user means: a run's folder, an experiment's name (its latest run), nothing (the latest of all)."""
    if text is not None:
        given = Path(text)
        if (given / MANIFEST).exists():
            return _own(given.resolve())
        inside = root / text
        if (inside / MANIFEST).exists():
            return _own(inside.resolve())
        if (inside / LATEST).exists():
            return _own((inside / LATEST).resolve())
        known = ", ".join(sorted(path.parent.name for path in root.glob(f"*/{LATEST}"))) or "none"
        raise UserError(
            f'found "{text}", expected the folder of a finished run or an experiment with one ({known})',
            hint="`qoslab list` shows the runs",
        )
    latest = [link.resolve() for link in root.glob(f"*/{LATEST}") if link.exists()]
    if not latest:
        raise UserError(
            f"{root}: found no finished run", hint="qoslab run experiments/policing-vs-shaping.yml makes one"
        )
    return _own(max(latest, key=lambda path: _order(path.name)))
