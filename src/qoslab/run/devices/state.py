"""State for restoring the routers of a lab, kept from before the first line until they are restored.

For an inventory, it outlives the run and a reboot of this machine: `qoslab lab rescue` restores from it. It contains
configurations as the routers printed them, with their secrets, so only its owner may access it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from qoslab.errors import UserError
from qoslab.model.experiment import Topology
from qoslab.platforms import command_line_nodes
from qoslab.results.file_access import convert_write_errors

FORMAT = 1
OWNER_FILE = "about.json"
LOCK = "lock"
COUNTDOWNS = "countdowns.json"
MARK = "mark"
STATE_FOLDER_VARIABLE = "XDG_STATE_HOME"
"""Environment variable with the folder for states (XDG Base Directory Specification); default: `~/.local/state`."""
DIGITS = 12
"""Digits of the hash of an inventory's path, in its folder's name."""


@dataclass(frozen=True)
class StateOwner:
    """Owner of the state."""

    inventory: str
    run: str
    """Folder of the run."""
    since: str
    topology: Topology


class RestoreState:
    """Folder with `R1.before.ios`, then `R1.pushed.1.ios`, … of the pushed configurations since, oldest first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: TextIO | None = None

    @classmethod
    def for_inventory(cls, inventory: Path) -> RestoreState:
        """Return the state of the lab of an inventory; its folder may be absent."""
        home = os.environ.get(STATE_FOLDER_VARIABLE) or "~/.local/state"
        path = inventory.resolve()
        name = f"{path.stem}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:DIGITS]}"
        return cls(Path(home).expanduser() / "qoslab" / "restore" / name)

    def begin(self, *, inventory: Path, run: Path, topology: Topology) -> None:
        """Create it for a run. Raise `UserError` if another run is in progress there, or has left its state."""
        self._take(inventory)
        with convert_write_errors(self.folder):
            self._clear()
            since = datetime.now(UTC).isoformat(timespec="seconds")
            record = {
                "format": FORMAT,
                "inventory": str(inventory.resolve()),
                "run": str(run.resolve()),
                "since": since,
                "topology": topology.model_dump(mode="json", by_alias=True),
            }
            self._write(OWNER_FILE, json.dumps(record, indent=1) + "\n")

    def refuse_in_use(self, inventory: Path) -> None:
        """Raise `UserError` if another run of this user is in progress there, or has left its state."""
        if self.folder.is_dir():
            self._take(inventory)
            self.release()

    def _take(self, inventory: Path) -> None:
        """Lock the state. Raise `UserError` if a run has left its state, or is in progress."""
        self.lock_routers()
        if about := self.unrestored_owner():
            self.release()
            raise UserError(
                f"the routers of {inventory} were not restored after the run {about.run} ({about.since})",
                hint=f"Restore them: qoslab lab rescue {shlex.quote(str(inventory))}",
            )

    def lock_routers(self) -> None:
        """Lock these routers on this machine until `release` or the end of this process.

        Raise `UserError` if they are locked.
        """
        while True:
            with convert_write_errors(self.folder):
                self.make()
                held = (self.folder / LOCK).open("a", encoding="utf-8")
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                held.close()
                who = (
                    f"the run {self.read_owner().run} ({self.read_owner().since})"
                    if self.exists()
                    else "another process"
                )
                raise UserError(
                    f"{who} is in progress on these routers", hint="Wait until it ends, or stop it."
                ) from error
            if os.fstat(held.fileno()).st_nlink:
                self._held = held
                return
            # Its holder has removed it since it was opened.
            held.close()

    def release(self) -> None:
        """Release the locks of the routers."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def make(self) -> None:
        """Create the folder, accessible only to its owner."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)

    def recreate(self) -> None:
        """Remove and recreate the state, because the routers changed."""
        self.remove()
        self.make()

    def exists(self) -> bool:
        """Return whether there is something to restore from."""
        return (self.folder / OWNER_FILE).is_file()

    def unrestored_owner(self) -> StateOwner | None:
        """Return the owner if there are routers to restore; Linux routers restore themselves."""
        about = self.read_owner() if self.exists() else None
        return about if about is not None and command_line_nodes(about.topology) else None

    def read_owner(self) -> StateOwner:
        """Return the owner. Raise `UserError` if it cannot be read."""
        file = self.folder / OWNER_FILE
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            if record["format"] != FORMAT:
                raise UserError(f"{file}: found format {record['format']!r}, expected {FORMAT}")
            topology = Topology.model_validate_json(json.dumps(record["topology"]))
            return StateOwner(record["inventory"], record["run"], record["since"], topology)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise UserError(
                f"{file} cannot be read: {error}", hint="The configurations are in the same folder."
            ) from error

    def configuration_before(self, router: str) -> str:
        """Return the router's configuration from before the run."""
        return (self.folder / f"{router}.before.ios").read_text(encoding="utf-8")

    def has_configuration_before(self, router: str) -> bool:
        """Return whether the router's configuration from before the run is saved."""
        return (self.folder / f"{router}.before.ios").exists()

    def pushed_configurations(self, router: str) -> list[str]:
        """Return the pushed configurations that may not be undone, oldest first."""
        return [file.read_text(encoding="utf-8") for _, file in self._pushed_files(router)]

    def push(self, router: str, text: str) -> None:
        """Save the configuration before it is pushed; after the return it survives a power failure."""
        with convert_write_errors(self.folder):
            number = max((number for number, _ in self._pushed_files(router)), default=0) + 1
            self._write(f"{router}.pushed.{number}.ios", text)
            _sync(self.folder)

    def save_countdowns(self, countdowns: Mapping[str, str]) -> None:
        """Save the rollback timers of routers by name: the restoring process cancels them."""
        with convert_write_errors(self.folder):
            self._write(COUNTDOWNS, json.dumps(dict(countdowns)) + "\n")

    def rollback_timers(self) -> dict[str, str]:
        """Return the rollback timers of routers."""
        try:
            record: dict[str, str] = json.loads((self.folder / COUNTDOWNS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return record

    def save_run_locks(self, who: str) -> None:
        """Save the run locks entered on routers: the restoring process removes them."""
        with convert_write_errors(self.folder):
            self._write(MARK, who)

    def mark(self) -> str:
        """Return the run lock of the routers; empty if there is none."""
        file = self.folder / MARK
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def forget_earlier_pushes(self, router: str) -> None:
        """Remove all pushed configurations of a router except the latest, because they are undone."""
        for _, file in self._pushed_files(router)[:-1]:
            file.unlink()

    def forget_pushes(self) -> None:
        """Remove all pushed configurations, because they are undone."""
        for file in self.folder.glob("*.pushed.*.ios"):
            file.unlink()

    def remove(self) -> None:
        """Remove the state, because everything is restored or nothing was begun."""
        # First, so that no process restores from a part of the state after an interruption here.
        (self.folder / OWNER_FILE).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.release()

    def _clear(self) -> None:
        """Remove the remains of a state whose removal was interrupted."""
        for each in self.folder.iterdir():
            if each.is_dir():
                shutil.rmtree(each)
            elif each.name != LOCK:
                each.unlink()

    def _pushed_files(self, router: str) -> list[tuple[int, Path]]:
        files = self.folder.glob(f"{router}.pushed.*.ios")
        numbered = [(file.name.removeprefix(f"{router}.pushed.").removesuffix(".ios"), file) for file in files]
        return sorted((int(number), file) for number, file in numbered if number.isdecimal())

    def _write(self, name: str, text: str) -> None:
        fresh = self.folder / f".{name}.new"
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.folder / name)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
