"""Secrets of many kinds in an inventory and on a router: no output or file of a run has them."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from commands import Command, run
from labs import run_inside
from test_iosd import session
from test_run import EXPERIMENT, latest, variant

from qoslab.virtual_lab import Lab
from verdicts import newest_run, status_of

pytestmark = pytest.mark.lab

ON_ROUTER = {
    "user password": "username eve password 0 {}",
    "enable password": "enable password {}",
    "SNMP community": "snmp-server community {} RO",
    "SNMP trap community": "snmp-server host 10.9.9.9 {}",
    "TACACS key": "tacacs-server host 10.9.9.9 key {}",
    "RADIUS key": "radius-server key {}",
    "key of a TACACS server's block": "tacacs server PLANT\n key {}",
    "key of a private server": "aaa group server radius PLANT\n server-private 10.9.9.9 key {}",
    "key chain": "key chain PLANT\n key 1\n  key-string {}",
    "NTP key": "ntp authentication-key 1 md5 {}",
    "FTP password": "ip ftp password {}",
    "password of a line": "line vty 0 4\npassword {}",
}
FROM_ENVIRONMENT = "login password, from the environment"
READERS = re.compile(r"environ of (?:.*/ansible(?:-inventory)? -i |\S+ \S+/qoslab run )")
"""Programs of Ansible that read the inventory: only their environment has its secrets.

A process that the run has forked also has them until it executes its program.
"""
OF_A_PROXY = "password of a proxy"
OWN_INVENTORY = re.compile(r"file \S+/inventory\.json 100600")
"""Inventory of Ansible, which reaches routers through their proxies."""
MIN_FILES = 12
"""Number of kinds of secrets; the inventory adds more."""
OBSERVED = "observe:\n  - {node: R1, command: show running-config, when: [before, after]}\n"


class SecretWatch:
    """Command lines and environments of processes, and contents of temporary files."""

    def __init__(self, spared: set[int], folder: Path) -> None:
        self._spared = spared
        self._folder = folder
        self._stop = threading.Event()
        self._read: dict[Path, tuple[int, int]] = {}
        """Modification time and length of each file."""
        self.seen: dict[bytes, str] = {}
        """Start arguments of processes; contents and modes of files."""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            for process in Path("/proc").iterdir():
                if process.name.isdigit() and int(process.name) not in self._spared:
                    # First, so that a process that ends in the meantime has a name.
                    line = _line(process)
                    for what in ("cmdline", "environ"):
                        try:
                            content = (process / what).read_bytes()
                        except OSError:
                            continue
                        self.seen.setdefault(content, f"{what} of {_line(process) or line}")
            self._look_at_files()

    def _look_at_files(self) -> None:
        for folder, _, names in os.walk(self._folder):
            for path in (Path(folder, name) for name in names):
                with suppress(OSError):
                    found = path.lstat()
                    if stat.S_ISREG(found.st_mode) and self._read.get(path) != (found.st_mtime_ns, found.st_size):
                        self.seen.setdefault(
                            path.read_bytes(), f"file {path.relative_to(self._folder)} {found.st_mode:o}"
                        )
                        self._read[path] = (found.st_mtime_ns, found.st_size)

    def __enter__(self) -> SecretWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def _line(process: Path) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def vault_inventory(value: str, password: Path) -> str:
    """Return an encrypted value in the form of an inventory."""
    program = str(Path(sys.executable).with_name("ansible-vault"))
    # A generated password may begin with a hyphen, like an option.
    argv = [program, "encrypt_string", "--vault-password-file", str(password), "--name", "x", "--", value]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    body = [line.strip() for line in printed.splitlines()[1:]]
    return "!vault |\n" + "\n".join(" " * 14 + line for line in body)


@contextmanager
def planted_secrets(lab: Lab, folder: Path, inventory: Path, patch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Write secrets of each kind to their places; remove them from the router afterwards."""
    login = lab.ssh("R1")
    kinds = {kind: f"PLANTED-{number:02}-xyz" for number, kind in enumerate(ON_ROUTER)}
    lines = [line for kind, text in ON_ROUTER.items() for line in text.format(kinds[kind]).splitlines()]
    output = session(lab, "configure terminal", *lines, "end", router="R1")
    assert "%" not in output, output
    assert login.password is not None and login.enable is not None
    vault = folder / "vault.txt"
    vault.write_text("PLANTED-vault-password\n")
    locked = f"ansible_become_password: {vault_inventory(login.enable, vault)}"
    patch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(vault))
    patch.setenv("RACK_LOGIN", login.password)
    text = inventory.read_text()
    text, found = re.subn(
        r"ansible_password: .*", "ansible_password: \"{{ lookup('ansible.builtin.env', 'RACK_LOGIN') }}\"", text
    )
    text, again = re.subn(r"ansible_become_password: .*", locked, text)
    assert (found, again) == (1, 1)
    inventory.write_text(text)
    key = inventory.with_suffix(".key").read_text().splitlines()
    yield {
        **kinds,
        FROM_ENVIRONMENT: login.password,
        "enable secret, from a vault": login.enable,
        "vault password": "PLANTED-vault-password",
        "private key of the hosts": key[len(key) // 2],
        "hash of a user's secret": "$1$",
    }


def test_planted_secrets_appear_nowhere(
    clean: Path, exposed: tuple[Lab, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, inventory = exposed
    file = variant(clean, lambda text: re.sub(r"(?m)^observe:\n(?:  .*\n)*", OBSERVED, text))
    assert OBSERVED in file.read_text()
    with planted_secrets(lab, clean, inventory, monkeypatch) as secrets:
        daemons = set(run_inside(lab))
        command = Command(clean, "run", str(file), "--lab", str(inventory), "--duration", "5s", "--arm", "policed")
        # A secret that the user passes in the environment is visible in that process's own environment, which belongs
        # to the kernel.
        with SecretWatch({os.getpid(), *daemons, command.process.pid}, (clean / "tmp").resolve()) as watch:
            command.wait_for("traffic")
            lists = list((clean / "tmp").glob("*/inventory.json"))
            proxy_passwords = {str(each) for each in _passwords(json.loads(lists[0].read_text()))}
            status, output, errors = command.end()
        assert status == status_of(newest_run(clean)), errors + output
        assert proxy_passwords and login_is_not_among(proxy_passwords, secrets), proxy_passwords
        secrets |= {f"{OF_A_PROXY} {number}": each for number, each in enumerate(proxy_passwords)}
    assert len(secrets) >= MIN_FILES
    shown = lab.run("client", ["true"])
    assert shown.returncode == 0
    run = latest(clean)
    kept = {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    places = {**kept, "output": (output + errors).encode(), **{who: text for text, who in watch.seen.items()}}
    state = inventory.parent / "state"
    places |= {str(path): path.read_bytes() for path in state.rglob("*") if path.is_file()}
    wanted = {kind: secret.encode() for kind, secret in secrets.items()}
    found = [(kind, place) for kind, secret in wanted.items() for place, text in places.items() if secret in text]
    # The proxy's password is readable in this file, and is valid as long as the proxy.
    assert [each for each in found if not _is_allowed(*each)] == []
    assert any(OWN_INVENTORY.match(place) for place in watch.seen.values())
    # The lines are there, without their secrets.
    config = kept["cells/policed/1/config/R1.running.ios"].decode()
    assert "snmp-server community <removed>" in config
    observed = [text.decode() for name, text in kept.items() if "show-running-config.txt" in name]
    assert len(observed) == 2 and all("snmp-server community <removed>" in text for text in observed)


def _is_allowed(kind: str, place: str) -> bool:
    if kind == FROM_ENVIRONMENT:
        return READERS.match(place) is not None
    return kind.startswith(OF_A_PROXY) and OWN_INVENTORY.match(place) is not None


def _passwords(listed: object) -> Iterator[str]:
    """Return all values of an inventory under `ansible_password`."""
    if isinstance(listed, dict):
        for key, value in listed.items():
            if key == "ansible_password":
                yield value
            else:
                yield from _passwords(value)


def login_is_not_among(proxy_passwords: set[str], secrets: dict[str, str]) -> bool:
    """Return whether Ansible has only passwords of proxies, and none of a device."""
    return not proxy_passwords & set(secrets.values())


def type_password(folder: Path, answers: dict[str, str], *arguments: str, until: str = "") -> tuple[int, str]:
    """Return exit status and screen of a `qoslab` on a terminal that answers its questions; kill it at `until`."""
    ours, theirs = os.openpty()
    command = Command(folder, *arguments, terminal=theirs)
    os.close(theirs)
    screen, answered = "", 0
    with suppress(OSError):  # a terminal disappears when its last user closes it
        while part := os.read(ours, 4096):
            screen += part.decode()
            question = next((each for each in answers if screen[answered:].endswith(each)), None)
            if question is not None:
                answered = len(screen)
                os.write(ours, answers[question].encode() + b"\n")
            if until and until in screen:
                command.process.kill()
                break
    status = command.process.wait(60)
    os.close(ours)
    return status, screen


@pytest.mark.long
def test_prompted_passwords_log_in_and_appear_nowhere(clean: Path, exposed: tuple[Lab, Path]) -> None:
    lab, inventory = exposed
    login = lab.ssh("R1")
    assert login.password is not None and login.enable is not None
    text, found = re.subn(r" +ansible_(become_)?password: .*\n", "", inventory.read_text())
    assert found == 2
    inventory.write_text(text)
    answers = {
        f"Password for {login.user} on R1 (empty: use a key): ": login.password,
        "Enable secret for R1 (empty: none): ": login.enable,
    }
    cell = (str(EXPERIMENT), "--lab", str(inventory), "--duration", "20s", "--arm", "policed")
    status, checked = type_password(clean, answers, "lab", "check", str(inventory), str(EXPERIMENT), "--ask")
    assert status == 0, checked
    with SecretWatch({os.getpid(), *run_inside(lab)}, (clean / "tmp").resolve()) as watch:
        status, cut = type_password(clean, answers, "run", *cell, "--ask", until="traffic")
    assert status == -signal.SIGKILL, cut
    status, rescued = type_password(clean, answers, "lab", "rescue", str(inventory), "--ask")
    assert status == 0 and "are as they were before the run" in rescued, rescued
    assert all(question in screen for question in answers for screen in (checked, cut, rescued))
    kept = {str(path): path.read_bytes() for path in (clean / "runs").rglob("*") if path.is_file()}
    assert any("/transcripts/" in path for path in kept)
    places = {
        **kept,
        "screens": (checked + cut + rescued).encode(),
        **{who: answer for answer, who in watch.seen.items()},
    }
    secrets = (login.password.encode(), login.enable.encode())
    assert [place for place, answer in places.items() if any(secret in answer for secret in secrets)] == []
    # Without a password nobody can log in.
    status, _, errors = run(clean, "lab", "check", str(inventory), str(EXPERIMENT))
    assert status == 2 and "R1: login refused" in errors, errors
