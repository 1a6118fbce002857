"""Messages of the lab's supervisor about missing things of the machine."""

from __future__ import annotations

import errno
import json
import os
import socket

import pytest

from qoslab.errors import MachineError
from qoslab.virtual_lab.supervision import SupervisorClient


def test_namespace_limit_names_the_kernel_setting() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        error = "new network namespace: No space left on device"
        theirs.send(json.dumps({"ok": False, "errno": errno.ENOSPC, "error": error}).encode())
        with pytest.raises(MachineError) as raised:
            SupervisorClient(ours, os.getpid()).request("create", namespaces=[])
    assert error in raised.value.message
    assert "user.max_net_namespaces" in raised.value.hint
