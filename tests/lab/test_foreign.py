"""FRR as a foreign router: after a login it is recognised as no IOS and left unchanged.

`test_foreign_packages` has the devices of the package index.
"""

from __future__ import annotations

import getpass
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run
from test_external import EXPERIMENT_OF_IT, hosts
from test_openssh import SSHD, known_hosts_line, sshd
from test_run import EXPERIMENT

from qoslab.run.real.access.methods import AccessMethod
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.expose import expose_lab
from waiting import listens, wait_until

FRR = Path("/usr/lib/frr/zebra")
VTYSH = shutil.which("vtysh")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(not FRR.exists() or VTYSH is None or SSHD is None, reason="needs frr and OpenSSH's sshd"),
]


def vtysh(folder: Path) -> list[str]:
    """Return the command line of FRR with the files of a folder; its configuration on this machine is readable only by
    root.
    """
    return [str(VTYSH), "--config_dir", str(folder), "--vty_socket", str(folder)]


@pytest.fixture
def frr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, Path]]:
    """Yield the port of FRR behind `vtysh`, as a router with a key login, and the folder of its sockets."""
    # A socket path has at most 107 characters.
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    options = ["-u", "root", "-g", "root", "--vty_socket", str(folder), "-i", f"{folder}/pid", "-z", f"{folder}/api"]
    # Debian's package requires a special group for its user; inside the namespace this is root's group.
    (folder / "group").write_text("root:x:0:\nfrrvty:x:0:root\nfrr:x:0:root\n")
    prepare = f'mount --bind {folder}/group /etc/group && exec "$@"'
    namespaces = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--kill-child", "--fork"]
    namespaces += ["sh", "-c", prepare, "sh"]
    (folder / "vtysh.conf").touch()
    log = (tmp_path / "zebra.log").open("wb")
    zebra = subprocess.Popen([*namespaces, str(FRR), *options], stdout=log, stderr=log)
    ssh = tmp_path / "home/.ssh"
    ssh.mkdir(parents=True)
    key = ssh / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    monkeypatch.setenv("HOME", str(ssh.parent))
    try:
        wait_until(lambda: listens(folder / "zebra.vty"), "zebra listens", report=(tmp_path / "zebra.log").read_text)
        with sshd(tmp_path / "sshd", key, vtysh(folder), words=False) as port:
            (ssh / "known_hosts").write_text(known_hosts_line(port, tmp_path / "sshd"))
            yield port, folder
    finally:
        # `unshare` ignores SIGTERM while it waits; its child processes end with it.
        zebra.kill()
        zebra.wait()
        log.close()
        shutil.rmtree(folder)


def configuration(folder: Path) -> str:
    argv = [*vtysh(folder), "-c", "show running-config"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
def test_proxy_logs_in_to_frr(frr: tuple[int, Path]) -> None:
    port, folder = frr
    before = configuration(folder)
    with AccessProxies({"R1": AccessMethod("127.0.0.1", port, user=getpass.getuser())}) as proxies:
        version, unknown = proxies.ask("R1", "show version", "show policy-map interface")
    assert version.startswith("FRRouting ")
    assert "% " in unknown
    assert configuration(folder) == before


@pytest.mark.long
def test_frr_is_recognised_as_no_ios_and_left_unchanged(
    frr: tuple[int, Path], clean: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    port, folder = frr
    file, before = tmp_path / "here.yml", configuration(folder)
    with Lab.up(EXPERIMENT_OF_IT.topology, name=name) as lab:
        expose_lab(lab, file)
        kept = hosts(lab)
        with file.with_suffix(".known_hosts").open("a") as listed:
            listed.write(known_hosts_line(port, tmp_path / "sshd"))
        router = f"R1:\n          ansible_host: 127.0.0.1\n          ansible_port: {port}\n"
        text, found = re.subn(
            r"R1:\n(?: +ansible_\w+: .*\n)+", f"{router}          ansible_user: {getpass.getuser()}\n", file.read_text()
        )
        assert found == 1
        file.write_text(text)
        for argv in (("lab", "check", str(file), str(EXPERIMENT)), ("run", str(EXPERIMENT), "--lab", str(file))):
            status, _, errors = run(clean, *argv)
            assert status == 2, errors
            assert re.search(r'R1: found "FRRouting .*" as its version, expected Cisco IOS', errors), errors
            assert "Traceback" not in errors
        assert configuration(folder) == before and hosts(lab) == kept
