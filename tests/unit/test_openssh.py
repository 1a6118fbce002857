"""Options for ssh, read by ssh itself."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from qoslab.system.openssh import host_key_options, identity_options


def parsed_options(*options: str) -> dict[str, str]:
    """Return the options as ssh reads them, without connecting."""
    output = subprocess.run(["ssh", "-G", "-F", "none", *options, "host"], capture_output=True, text=True, check=True)
    return dict(line.partition(" ")[::2] for line in output.stdout.splitlines())


@pytest.mark.parametrize("name", ["keys", "my rack/keys", "1\t2", 'a "rack"', "back\\slash", "it's", "Zürich", "#1"])
def test_settings_file_is_found_by_its_path(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    found = parsed_options(*host_key_options(file), *identity_options(file))
    assert (found["userknownhostsfile"], found["stricthostkeychecking"]) == (str(file), "true")
    assert (found["identityfile"], found["identitiesonly"]) == (str(file), "yes")


def test_percent_sign_in_a_key_name_is_literal(tmp_path: Path) -> None:
    """Use a percent sign in the name of a key: ssh expands it when it reads the file, after it is connected."""
    rack = tmp_path / "100%d"
    rack.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", rack / "key"], check=True)
    assert parsed_options(*host_key_options(rack / "known"))["userknownhostsfile"] == str(rack / "known")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        place = ("-p", str(nobody.getsockname()[1]), "127.0.0.1")
        command = ["ssh", "-v", "-F", "none", *identity_options(rack / "key"), "-o", "BatchMode=yes", *place]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as ssh:
            nobody.accept()[0].close()
            text = ssh.communicate()[1]
    assert f"identity file {rack}/key type 3" in text, text
