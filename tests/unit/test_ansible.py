"""Ansible sessions, as far as they can be tested without a router."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import pickle
import re
import socket
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from fake_device import ENABLE, PASSWORD, USER, FakeDevice

from qoslab.errors import IosError
from qoslab.run.devices.ansible import connection as ansible_connection
from qoslab.run.devices.ansible import connection_choice as helper_choice
from qoslab.run.devices.ansible.intents import DifferencesError, IntentError, execute_in_order
from qoslab.run.devices.ansible.playbooks import (
    ALWAYS_IMPORTED,
    IOS_MODULES,
    AnsibleSession,
    PlaybookOutcome,
    TaskResult,
    _explain,
    _save_outcome,
    ansible_environment,
    failure_message,
)
from qoslab.run.devices.login_failures import TRANSIENT_FAILURES, FailureKind
from qoslab.run.faults import TransientFault
from qoslab.run.real.access.methods import AccessFailure
from qoslab.system.programs import python_module_command
from qoslab.system.shipped import shipped_path

REFUSED = {
    "msg": 'Task failed: b"police bogus 1\\r\\n                         ^\\r\\n'
    "% Invalid input detected at '^' marker.\\r\\n\\r\\n"
    'R1(config-pmap-c)#"'
}


def test_refusal_is_quoted_from_the_router() -> None:
    # on the screen the caret is below the word; the message lacks the prompt before the line
    assert failure_message(REFUSED) == "\n".join(
        ["police bogus 1", "       ^", "% Invalid input detected at '^' marker."]
    )


def test_messages_without_refusal_stay_unchanged() -> None:
    message = "unable to elevate privilege to enable mode, at prompt [b'\\r\\nPassword: '] with error: wrong"
    assert failure_message({"msg": message}) == message
    message = "ssh connection failed: ssh connect failed: Connection refused"
    assert failure_message({"msg": message}) == message
    assert failure_message({}) == ""


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (
            "ansible.module_utils.connection.ConnectionError: Unable to decode JSON from response set_options.",
            "Unable to decode JSON from response set_options.",
        ),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_location_of_a_failed_ansible_process_is_hidden(last: str, expected: str) -> None:
    places = 'Task failed: Traceback (most recent call last):\n  File "connection.py", line 188, in send\n'
    message = f"{places}ConnectionRefusedError: [Errno 111] Connection refused\n\n{places}{last}\n"
    assert failure_message({"msg": message}) == expected


def test_refusal_is_quoted_from_the_data_plane() -> None:
    text = {"ok": False, "error": {"code": "bad_config", "message": "policy_maps.P.classes[0].police.bc: negative"}}
    failed = {"msg": "non-zero return code", "rc": 1, "stdout": json.dumps(text), "stderr": ""}
    assert failure_message(failed) == "policy_maps.P.classes[0].police.bc: negative"
    assert (
        failure_message({"msg": "non-zero return code", "rc": 1, "stdout": "", "stderr": "no socket\n"}) == "no socket"
    )


@pytest.mark.parametrize("kind", list(FailureKind))
def test_proxy_error_is_not_a_refused_configuration(kind: FailureKind) -> None:
    reported = AccessFailure(kind, "the connection to R1 was lost")
    text = f"Task failed: b'class class-default\\r\\n% Error: {reported}\\r\\nR1#'"
    error = _explain(PlaybookOutcome(("apply",), (task(failed=True, result={"msg": text}),)), None)
    assert error.message == f"R1: {kind}: the connection to R1 was lost"
    assert error.hint == "Check whether the router answers, and read the transcripts of its logins."
    assert isinstance(error, TransientFault) is (kind in TRANSIENT_FAILURES)


def test_router_message_that_resembles_a_proxy_message_is_quoted() -> None:
    text = "Task failed: b'police bogus\\r\\n% Error: of some kind: bogus\\r\\nR1(config)#'"
    error = _explain(PlaybookOutcome(("apply",), (task(failed=True, result={"msg": text}),)), None)
    assert error.message.startswith("R1 refused the configuration (apply):\n") and not isinstance(error, TransientFault)


def task(**values: Any) -> TaskResult:
    given: dict[str, Any] = {
        "intent": "apply",
        "host": "R1",
        "changed": False,
        "failed": False,
        "unreachable": False,
        "result": {},
    }
    return TaskResult(**given | values)


def test_ansible_answers_are_assigned_by_command() -> None:
    outcome = PlaybookOutcome(
        ("verify",),
        (
            task(intent="verify", result={"stdout": ["hostname R1", "up"]}),
            task(intent="verify", host="R2", failed=True),
        ),
        ("show clock",),
    )
    assert outcome.answers("R1") == {"show running-config": "hostname R1", "show clock": "up"}
    assert outcome.answers("R2") == {}
    assert [failed.host for failed in outcome.failures] == ["R2"]


def test_reading_and_saving_change_no_router() -> None:
    tasks = (task(intent="prepare", changed=True), task(host="R2", changed=True), task(intent="verify", changed=True))
    assert PlaybookOutcome(("prepare", "apply", "verify"), tasks).changed_routers == {"R2"}


def test_every_intent_has_a_playbook_in_both_roles() -> None:
    for intent in ("prepare", "apply", "verify", "restore"):
        assert (shipped_path("playbooks") / f"{intent}.yml").exists()
        for role in ("ios", "engine_router"):
            assert (shipped_path("playbooks") / "roles" / role / "tasks" / f"{intent}.yml").exists()


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (IntentError("refused", rc=2), {"msg": "refused", "rc": 2}),
        (DifferencesError(["a", "b"]), {"msg": "a\nb", "differences": ["a", "b"]}),
        (OSError("no such file"), {"msg": "no such file"}),
    ],
)
def test_no_intent_is_carried_out_after_one_that_failed(error: Exception, result: dict[str, Any]) -> None:
    def fail() -> dict[str, Any]:
        raise error

    steps: Any = SimpleNamespace(
        restore=lambda: {"changed": True}, apply=fail, verify=lambda: pytest.fail("not reached")
    )
    restored = {"intent": "restore", "changed": True}
    failed = {"intent": "apply", "changed": False, "failed": True} | result
    assert execute_in_order(["restore", "apply", "verify"], steps, OSError) == {
        "changed": True,
        "intents": [restored, failed],
        "failed": True,
        "msg": result["msg"],
    }
    assert execute_in_order(["restore"], steps) == {"changed": True, "intents": [restored]}


@pytest.mark.long
def test_session_starts_ansible_without_paramiko() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "importtime",
            *python_module_command("qoslab.run.devices.ansible.play")[1:],
            "--version",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("ansible-playbook [core ")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "ansible.cli" in imported and "paramiko.transport" not in imported


# The connection helper, compared with the result of the installed Ansible for the same input.


def tagged_value(value: Any) -> Any:
    from ansible._internal._datatag._tags import Origin, TrustedAsTemplate
    from ansible.module_utils._internal._datatag import AnsibleTagHelper

    return AnsibleTagHelper.tag(value, (Origin(path="/x/inventory.yml", line_num=1), TrustedAsTemplate()))


def context(port: int) -> bytes:
    from ansible.playbook.play_context import PlayContext

    play = PlayContext()
    play.remote_addr, play.port, play.remote_user = tagged_value("127.0.0.1"), tagged_value(port), tagged_value("lab")
    play.connection = tagged_value("ansible.netcommon.network_cli")
    # the name until ansible-core 2.19
    attributes = play.serialize() if hasattr(play, "serialize") else play.dump_attrs()
    return pickle.dumps(attributes)


def test_unpickled_values_lose_only_their_tags() -> None:
    options = {
        "host": tagged_value("R1"),
        "port": tagged_value(22),
        "wait": tagged_value(0.5),
        "list": tagged_value(["a"]),
        "none": None,
    }
    read = ansible_connection.unpickle_block(pickle.dumps(options))
    assert read == {"host": "R1", "port": 22, "wait": 0.5, "list": ["a"], "none": None}
    assert json.loads(json.dumps(read)) == read


def test_task_with_an_unknown_type_is_passed_to_ansible() -> None:
    with pytest.raises(ansible_connection.FastPathError):
        ansible_connection.unpickle_block(pickle.dumps(Path("/x")))


def test_connection_socket_has_the_path_used_by_ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible.playbook.play_context import PlayContext
    from ansible.plugins.connection.ssh import Connection as SshConnection

    monkeypatch.setenv(ansible_connection.SOCKETS, "/run/sockets")
    play = PlayContext()
    play.deserialize(pickle.loads(context(40022)))
    theirs = SshConnection._create_control_path(play.remote_addr, play.port, play.remote_user, play.connection, 4711)
    ours = ansible_connection.socket_path(ansible_connection.unpickle_block(context(40022)), "4711")
    assert ours == theirs % {"directory": "/run/sockets"}


class ConnectionProcess(threading.Thread):
    """Server with the protocol of Ansible's connection process that records its requests."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        self.heard: list[tuple[str, list[Any], dict[str, Any]]] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()

    def run(self) -> None:
        while len(self.heard) < 4:
            connection, _ = self.listener.accept()
            with connection:
                size = struct.unpack("!Q", connection.recv(8, socket.MSG_WAITALL))[0]
                request = json.loads(connection.recv(size, socket.MSG_WAITALL))
                self.heard.append((request["method"], *request["params"]))
                answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"], "result_type": "pickle"}
                result = [("vvvv", "said")] if request["method"] == "pop_messages" else None
                answer["result"] = pickle.dumps(result).decode("utf-8", "surrogateescape")
                data = json.dumps(answer).encode()
                connection.sendall(struct.pack("!Q", len(data)) + data)


def ansible_helper(tmp_path: Path, data: bytes) -> subprocess.CompletedProcess[bytes]:
    original = tmp_path / "original.py"
    original.write_text("import sys\nprint('original', sys.argv[1:], len(sys.stdin.buffer.read()))\n")
    return subprocess.run(
        [sys.executable, ansible_connection.__file__, "4711", "task-1"],
        input=data,
        capture_output=True,
        check=True,
        env={ansible_connection.SOCKETS: str(tmp_path), ansible_connection.ORIGINAL: str(original)},
    )


def test_untested_release_of_ansible_keeps_its_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (helper_choice.choose().note, len(helper_choice.choose().variables)) == ("", 2)
    monkeypatch.setattr(helper_choice, "version", lambda name: "2.99.1")
    chosen = helper_choice.choose()
    assert chosen.variables == {}
    assert chosen.note.endswith("qoslab was tested with ansible-core 2.19, 2.20, 2.21, but 2.99.1 is installed")


def pickled_blocks(*parts: bytes) -> bytes:
    stream = io.BytesIO()
    for part in parts:
        stream.write(b"%d\n" % len(part) + part)
    return stream.getvalue()


def test_running_connection_is_informed_of_the_next_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ansible_connection.SOCKETS, str(tmp_path))
    reported = context(40022)
    path = ansible_connection.socket_path(ansible_connection.unpickle_block(reported), "4711")
    process = ConnectionProcess(path)
    process.start()
    done = ansible_helper(tmp_path, pickled_blocks(pickle.dumps({"timeout": tagged_value(30)}), reported))
    process.join(5)
    assert json.loads(done.stdout) == {"messages": [["vvvv", "said"]], "socket_path": path}
    assert [method for method, *_ in process.heard] == [
        "set_options",
        "update_play_context",
        "set_check_prompt",
        "pop_messages",
    ]
    assert process.heard[0][2] == {"direct": {"timeout": 30}}
    assert process.heard[1][1][0].encode("utf-8", "surrogateescape") == reported
    assert process.heard[2][1] == ["task-1"]


@pytest.mark.parametrize("read", ["whole", "broken", "empty"])
def test_other_connections_use_the_helper_of_ansible(tmp_path: Path, read: str) -> None:
    whole = pickled_blocks(pickle.dumps({}), context(40022))
    data = {"whole": whole, "broken": b"12\nbroken", "empty": b""}[read]
    assert ansible_helper(tmp_path, data).stdout.decode() == f"original ['4711', 'task-1'] {len(data)}\n"


def test_arguments_of_ios_config_may_be_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Push a file with `{{`: the module renders a trusted `src` as a template; some releases render everything."""
    from ansible._internal._datatag._tags import TrustedAsTemplate
    from ansible.parsing.dataloader import DataLoader
    from ansible.template import Templar

    module = pytest.importorskip("ansible_collections.ansible.netcommon.plugins.action.network")
    trace, file = tmp_path / "ran", tmp_path / "R1.ios"
    text = f"interface Fa0/0\n description {{{{ lookup('pipe', 'touch {trace}') }}}}\n"
    file.write_text(text)
    monkeypatch.setattr(module, "to_text", lambda read: TrustedAsTemplate().tag(read))
    task = SimpleNamespace(args={"src": str(file)}, _role=None)
    action = object.__new__(module.ActionModule)
    action._task, action._loader, action._templar = task, DataLoader(), Templar(DataLoader())
    monkeypatch.setattr(action, "_get_working_path", lambda: str(tmp_path))
    action._handle_src_option()
    assert task.args["src"] != text
    assert trace.exists()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("interface Fa0/0\n description {{ lookup('pipe', 'id') }}\n", "R1.ios:2:14: found '{{'"),
        ("banner motd x{%raw%}x\n", "R1.ios:1:14: found '{%'"),
        ("hostname a{#b\n", "R1.ios:1:11: found '{#'"),
    ],
)
def test_text_with_template_syntax_is_never_sent(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "R1.ios").write_text(text)
    with AnsibleSession(tmp_path / "inventory.json", before=tmp_path / "before") as session:
        with pytest.raises(IosError, match=re.escape(place)):
            session.execute(["apply", "verify"], intended=tmp_path)
        (tmp_path / "R1.ios").rename(tmp_path / "R1.restore.ios")
        with pytest.raises(IosError, match=re.escape(place.replace("R1.ios", "R1.restore.ios"))):
            session.execute(["restore"], restore=tmp_path)


def test_playbook_run_by_hand_never_sends_template_syntax(tmp_path: Path) -> None:
    """Call a playbook by hand: the roles load the file with a filter, the earliest place before Ansible sends."""
    (tmp_path / "inventory.ini").write_text("[ios]\nR1 ansible_connection=local\n")
    (tmp_path / "R1.restore.ios").write_text("no banner motd\nhostname {{ lookup('pipe', 'id') }}\n")
    play = {
        "hosts": "ios",
        "gather_facts": False,
        "tasks": [
            {
                "ansible.builtin.import_role": {"name": "ios", "tasks_from": "restore"},
                "vars": {"ios_restore_folder": str(tmp_path)},
            }
        ],
    }
    (tmp_path / "by-hand.yml").write_text(yaml.safe_dump([play]))
    program = Path(sys.executable).with_name("ansible-playbook")
    done = subprocess.run(
        [program, "-i", tmp_path / "inventory.ini", tmp_path / "by-hand.yml"],
        env=os.environ
        | {"ANSIBLE_ROLES_PATH": str(shipped_path("playbooks") / "roles"), "ANSIBLE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"{tmp_path}/R1.restore.ios:2:10: found '{{{{', the start of" in done.stdout + done.stderr


@pytest.mark.parametrize("name", [*ALWAYS_IMPORTED, *IOS_MODULES])
def test_preloaded_modules_of_a_session_exist(name: str) -> None:
    """Import the preloaded modules: if a release has moved one, each task would load it again unnoticed."""
    assert importlib.util.find_spec(name) is not None


@pytest.mark.long
def test_session_preloads_modules_in_the_parent_of_its_workers(tmp_path: Path) -> None:
    first = yaml.safe_load((shipped_path("playbooks") / "session.yml").read_text())[0]
    (load,) = (task for task in first["tasks"] if "session_modules" in str(task))
    (tmp_path / "told_once.py").write_text("import os\nos.environ['TOLD_ONCE'] = str(os.getpid())\n")
    reported = {
        "ansible.builtin.debug": {"msg": "{{ lookup('env', 'TOLD_ONCE') }} of {{ lookup('pipe', 'echo $PPID') }}"}
    }
    play = {"hosts": "localhost", "gather_facts": False, "connection": "local", "tasks": [load, reported]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    extra = json.dumps({"session_modules": ["told_once", "no_such_module"]})
    ansible = subprocess.Popen(
        [Path(sys.executable).with_name("ansible-playbook"), tmp_path / "play.yml", "-e", extra],
        env=os.environ
        | {
            "ANSIBLE_LOOKUP_PLUGINS": str(shipped_path("playbooks") / "lookup_plugins"),
            "ANSIBLE_HOME": str(tmp_path),
            "PYTHONPATH": str(tmp_path),
        },
        stdout=subprocess.PIPE,
        text=True,
    )
    text, _ = ansible.communicate()
    found = re.search(r'"msg": "(\d+) of (\d+)"', text)
    assert found is not None, text
    assert int(found[1]) == ansible.pid != int(found[2])


@pytest.mark.parametrize("playbook", ["prepare.yml", "apply.yml", "verify.yml", "restore.yml", "session.yml"])
def test_playbooks_require_a_supported_ansible(playbook: str) -> None:
    for play in yaml.safe_load((shipped_path("playbooks") / playbook).read_text()):
        first = play["tasks"][0]
        if play["hosts"] != "ios:engine_router":  # the session's second play: the first one has requested the facts
            (asked,) = yaml.safe_load((shipped_path("playbooks") / first["ansible.builtin.import_tasks"]).read_text())
            assert "2.19" in asked["ansible.builtin.assert"]["that"]


def run_playbook_by_hand(playbook: str, inventory: Path, **variables: str) -> str:
    """Return the output of a playbook with -v, under the usual umask."""
    argv: list[str | Path] = [Path(sys.executable).with_name("ansible-playbook"), "-v", "-i", inventory]
    for name, value in variables.items():
        argv += ["-e", f"{name}={value}"]
    home = inventory.parent / "home"
    done = subprocess.run(
        [*argv, shipped_path("playbooks") / playbook],
        env=os.environ
        | {"ANSIBLE_CONFIG": str(shipped_path("playbooks").parent / "ansible.cfg"), "HOME": str(home)}
        | {"ANSIBLE_ROLES_PATH": str(shipped_path("playbooks") / "roles"), "ANSIBLE_HOST_KEY_CHECKING": "False"},
        cwd=inventory.parent,
        capture_output=True,
        text=True,
        umask=0o022,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("there", [False, True])
def test_playbook_run_by_hand_saves_configurations_privately(tmp_path: Path, there: bool) -> None:
    (tmp_path / "device").mkdir()
    before, kept = tmp_path / "before", tmp_path / "before/R1.before.ios"
    if there:
        before.mkdir(0o755)
        kept.touch(0o644)
    with FakeDevice(tmp_path / "device") as device:
        words = {
            "ansible_host": "127.0.0.1",
            "ansible_port": device.ssh,
            "ansible_user": USER,
            "ansible_password": PASSWORD,
            "ansible_become": True,
            "ansible_become_method": "ansible.netcommon.enable",
            "ansible_become_password": ENABLE,
            "ansible_connection": "ansible.netcommon.network_cli",
            "ansible_network_os": "cisco.ios.ios",
        }
        inventory = tmp_path / "inventory.yml"
        inventory.write_text(yaml.safe_dump({"all": {"children": {"ios": {"hosts": {"R1": words}}}}}))
        printed = run_playbook_by_hand("prepare.yml", inventory, ios_before_folder=str(before))
        printed += run_playbook_by_hand("verify.yml", inventory, ios_intended_folder=str(tmp_path))
    assert "interface FastEthernet0/0\n" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    # An existing folder may have other users.
    assert stat.S_IMODE(before.stat().st_mode) == (0o755 if there else 0o700)
    assert "ok: [R1] => " in printed and "FastEthernet0/0" not in printed


def test_saved_output_of_ansible_has_no_secrets(tmp_path: Path) -> None:
    printed = 'fatal: [R1]: FAILED! => {"msg": "enable secret 5 $1$abcd$HIDDEN"}\n+snmp-server community HIDDEN\nok\n'
    _save_outcome(tmp_path, PlaybookOutcome(("restore", "apply"), (), output=printed))
    kept = (tmp_path / "restore-apply" / "stdout").read_text()
    assert "HIDDEN" not in kept
    assert kept.splitlines()[1:] == ["+snmp-server community <removed>", "ok"]


def test_ansible_takes_its_settings_from_the_session(tmp_path: Path) -> None:
    """Let Ansible report its settings: the number of routers that it configures at a time."""
    own = ansible_environment(tmp_path, shipped_path("playbooks"), helper_choice.choose())
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-config"), "dump", "--only-changed"],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "DEFAULT_FORKS(env: ANSIBLE_FORKS) = 16" in done.stdout
