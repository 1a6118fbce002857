"""Ansible's persistent connection helper, without its start-up cost.

Ansible starts a helper process for every task on a network device. All but the first only send a request to the
connection process of the play, which already runs, the options of the next task; yet each spends most of a second on
importing Ansible. This script sends the request with the standard library alone, in a tenth of that time. If there is
no connection yet, or anything at all is unexpected, Ansible's own helper takes over with the same input.

It is run as a script by `qoslab.run.devices.ansible.playbooks`, and only with releases of ansible-core whose helper it
was compared with.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import socket
import struct
import sys
import uuid
from typing import Any, ClassVar, NoReturn

ORIGINAL = "QOSLAB_ANSIBLE_HELPER"
"""Environment variable with the path of Ansible's own helper."""

VARIABLE = "_ANSIBLE_CONNECTION_PATH"
"""Environment variable that makes Ansible use another helper."""

SOCKETS = "ANSIBLE_PERSISTENT_CONTROL_PATH_DIR"
"""Environment variable with the folder of the connection processes' sockets."""


class FastPathError(Exception):
    """The fast path does not apply."""


class _PlainValue:
    """Value without its tags of origin, which the connection process does not need."""

    def __setstate__(self, state: object) -> None:
        """Ignore the tags."""


class _Text(_PlainValue, str):
    """A string."""


class _Number(_PlainValue, int):
    """An integer."""


class _Fraction(_PlainValue, float):
    """A float."""


class _List(_PlainValue, list[Any]):
    """A list."""


class _Dict(_PlainValue, dict[Any, Any]):
    """A dictionary, or the tags themselves."""


class PlainUnpickler(pickle.Unpickler):
    """Unpickler of Ansible's tagged values as plain ones, without importing Ansible."""

    ALLOWED_CLASSES: ClassVar[dict[str, type]] = {
        "_AnsibleTaggedStr": _Text,
        "_AnsibleTaggedInt": _Number,
        "_AnsibleTaggedFloat": _Fraction,
        "_AnsibleTaggedList": _List,
        "_AnsibleTaggedDict": _Dict,
        "_AnsibleTagsMapping": _Dict,
        "Origin": _Dict,
        "TrustedAsTemplate": _Dict,
    }

    def find_class(self, module: str, name: str) -> type:
        """Return the plain type; only the tagged types exist here."""
        if name not in self.ALLOWED_CLASSES:
            raise FastPathError(f"{module}.{name} in the input")
        return self.ALLOWED_CLASSES[name]


def unpickle_block(block: bytes) -> Any:
    """Return the value of a block."""
    return PlainUnpickler(io.BytesIO(block)).load()


def read_block(stream: io.BufferedIOBase) -> bytes:
    """Read one block: its length on a line, then its bytes."""
    size = int(stream.readline())
    block = stream.read(size)
    if len(block) != size:
        raise FastPathError("the input ends early")
    return block


def socket_path(context: dict[str, Any], playbook_pid: str) -> str:
    """Return the socket path of the connection process for this device and this play."""
    words = (context["remote_addr"], context["port"], context["remote_user"], context["connection"], playbook_pid)
    name = hashlib.sha1("-".join(str(word) for word in words).encode(), usedforsecurity=False).hexdigest()[:10]
    return os.path.join(os.environ[SOCKETS], name)  # noqa: PTH118 (pathlib is a tenth of the cost)


def call(path: str, method: str, *arguments: Any, **named: Any) -> Any:
    """Call a remote procedure of the connection process."""
    request = {"jsonrpc": "2.0", "method": method, "id": str(uuid.uuid4()), "params": (arguments, named)}
    data = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        connection.sendall(struct.pack("!Q", len(data)) + data)
        answer = _receive(connection, struct.unpack("!Q", _receive(connection, 8))[0])
    response = json.loads(answer)
    if "error" in response or response.get("id") != request["id"]:
        raise FastPathError(f"{method}: {response.get('error')}")
    if "result_type" in response:
        return unpickle_block(response["result"].encode("utf-8", "surrogateescape"))
    return response["result"]


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise FastPathError("the connection process closed the connection")
        data += part
    return data


def send_task_options(options: bytes, context: bytes, playbook_pid: str, task: str) -> dict[str, Any]:
    """Pass the options of `task` to the running connection process; return the answer that Ansible expects."""
    path = socket_path(unpickle_block(context), playbook_pid)
    if not os.path.exists(path):  # noqa: PTH110
        raise FastPathError("no connection yet")
    call(path, "set_options", direct=unpickle_block(options))
    call(path, "update_play_context", context.decode("utf-8", "surrogateescape"))
    call(path, "set_check_prompt", task)
    return {"messages": call(path, "pop_messages"), "socket_path": path}


def run_ansible_helper(data: bytes) -> NoReturn:
    """Become Ansible's own helper, with `data` as its standard input."""
    memory = os.memfd_create("input")
    with os.fdopen(os.dup(memory), "wb") as file:
        file.write(data)
    os.lseek(memory, 0, os.SEEK_SET)
    os.dup2(memory, 0)
    os.execv(sys.executable, [sys.executable, os.environ[ORIGINAL], *sys.argv[1:]])


def main() -> None:
    """Read options and play context from standard input, print the answer."""
    data = sys.stdin.buffer.read() if len(sys.argv) == 3 else b""
    if not data:
        # Verbosity flags, or nothing to read: not supported here.
        os.execv(sys.executable, [sys.executable, os.environ[ORIGINAL], *sys.argv[1:]])
    try:
        stream = io.BytesIO(data)
        options, context = read_block(stream), read_block(stream)
        answer = json.dumps(send_task_options(options, context, sys.argv[1], sys.argv[2]))
    except Exception:
        # Ansible's helper meets any such error too, and reports it in Ansible's form.
        run_ansible_helper(data)
    sys.stdout.write(answer)


if __name__ == "__main__":
    main()
