"""OpenSSH's server in front of the hosts, and as jump host of the routers' proxies.

The requests to hosts must not depend on the behaviour of one implementation.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import run
from test_external import EXPERIMENT_OF_IT, hosts, wait_until_clean
from test_run import EXPERIMENT, latest

from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from verdicts import newest_run, reasons_except_lateness, status_of
from waiting import wait_until

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(SSHD is None, reason="needs OpenSSH's sshd"),
]

SETTINGS = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
{command}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def is_ssh_server_ready(port: int) -> bool:
    """Return whether an SSH server answers: its port listens earlier."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        return client.recv(4) == b"SSH-"


@contextmanager
def sshd(folder: Path, key: Path, enter: list[str] | None, *, words: bool = True) -> Iterator[int]:
    """Return the port of a server that lets this user in with a key and runs `enter` for every command.

    Its last word is the client's command, unless it takes none (`words`).
    """
    assert SSHD is not None
    folder.mkdir()
    if os.geteuid() == 0:
        # Folder in which root's sshd drops its privileges; an init system creates it.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    port = free_port()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "host_key")], check=True)
    public = subprocess.run(["ssh-keygen", "-y", "-f", str(key)], capture_output=True, text=True, check=True).stdout
    (folder / "authorized").write_text(public)
    command = ""
    if enter is not None:
        script = folder / "enter"
        command = ' "$SSH_ORIGINAL_COMMAND"' if words else ""
        script.write_text(f"#!/bin/sh\nexec {shlex.join(enter)}{command}\n")
        script.chmod(0o755)
        command = f"ForceCommand {script}"
    (folder / "config").write_text(SETTINGS.format(port=port, folder=folder, command=command))
    log = (folder / "log").open("wb")
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=log, stdout=log)
    try:
        wait_until(lambda: is_ssh_server_ready(port), "sshd identifies itself", report=(folder / "log").read_text)
        yield port
    finally:
        server.terminate()
        server.wait()
        log.close()


def known_hosts_line(port: int, folder: Path) -> str:
    """Return a line of known_hosts."""
    return f"[127.0.0.1]:{port} {(folder / 'host_key.pub').read_text().rsplit(' ', 1)[0]}\n"


def test_run_works_through_openssh_and_a_jump_host(
    clean: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file, user = tmp_path / "here.yml", getpass.getuser()
    with Lab.up(EXPERIMENT_OF_IT.topology, name=name) as lab:
        expose_lab(lab, file)
        key = file.with_suffix(".key")
        before = hosts(lab)
        with (
            sshd(tmp_path / "client", key, lab.argv("client", ["sh", "-c"])) as client,
            sshd(tmp_path / "server", key, lab.argv("server", ["sh", "-c"])) as server,
            sshd(tmp_path / "jump", key, None) as jump,
        ):
            keys = {"client": client, "server": server, "jump": jump}
            with file.with_suffix(".known_hosts").open("a") as listed:
                listed.writelines(known_hosts_line(port, tmp_path / node) for node, port in keys.items())
            # The proxy logs in to the jump host as its user does.
            home = tmp_path / "home/.ssh"
            home.mkdir(parents=True)
            shutil.copy(key, home / "id_ed25519")
            (home / "known_hosts").write_text(known_hosts_line(jump, tmp_path / "jump"))
            monkeypatch.setenv("HOME", str(home.parent))
            text = file.read_text().replace("ansible_user: root", f"ansible_user: {user}")
            for node, port in (("client", client), ("server", server)):
                text, found = re.subn(
                    rf"({node}:\n +ansible_host: 127.0.0.1\n +ansible_port: )\d+", rf"\g<1>{port}", text
                )
                assert found == 1
            text, found = re.subn(r"( +)qoslab_rollback: none", rf"\g<0>\n\1qoslab_jump: {user}@127.0.0.1:{jump}", text)
            assert found == 1
            file.write_text(text)
            status, output, errors = run(
                clean, "run", str(EXPERIMENT), "--lab", str(file), "--duration", "3s", "--arm", "policed"
            )
            assert (latest(clean) / "cells/policed/1/cell.json").exists(), errors + output
            record = json.loads((latest(clean) / "cells/policed/1/cell.json").read_text())
            # The lateness of this machine as a host is not checked here.
            assert not reasons_except_lateness(record), errors
            assert status == status_of(newest_run(clean)), errors + output
            assert record["captures"]["server"]["received"] > 50
            wait_until_clean(lab, before)
        for node in keys:
            log = (tmp_path / node / "log").read_text()
            assert f"Accepted publickey for {user}" in log, log
