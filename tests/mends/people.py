"""Mends of what let others in, or showed them secrets."""

from __future__ import annotations

from mend import LET_IN, RIGHTS, SECRETS, Mend

PEOPLE = (
    Mend(
        "certificates for an address without encryption are taken in silence",
        "src/qoslab/run/cluster/dask_cluster.py",
        "        if given:\n",
        "        if False:\n",
        "tests/unit/test_cluster_crew.py::test_a_cluster_without_certificates_is_warned_of",
        danger=LET_IN,
    ),
    Mend(
        "a cluster's connection may go unencrypted",
        "src/qoslab/run/cluster/dask_cluster.py",
        "distributed.Security(require_encryption=True, **{name: str(path) for name, path in given.items()})",
        "None\n    return security",
        "tests/unit/test_cluster_crew.py::test_a_cluster_with_certificates",
        danger=LET_IN,
    ),
    Mend(
        "other users keep a router from answering",
        "src/qoslab/lab/sshd.py",
        """        if not is_own(conn.get_extra_info("socket")):
            conn.abort()
            return
""",
        "",
        "tests/unit/test_other_users.py::test_another_user_is_told_nothing[router by SSH]",
        danger=LET_IN,
    ),
    Mend(
        "other users may guess the passwords of a router by telnet",
        "src/qoslab/lab/telnetd.py",
        """        if not is_own(writer.get_extra_info("socket")):
            writer.transport.abort()
            return
""",
        "",
        "tests/unit/test_other_users.py::test_another_user_is_told_nothing[router by telnet]",
        danger=LET_IN,
    ),
    Mend(
        "other users come to the hosts of a lab that is exposed",
        "src/qoslab/lab/hostd.py",
        """        if not is_own(conn.get_extra_info("socket")):
            conn.abort()
""",
        "        pass\n",
        "tests/unit/test_other_users.py::test_another_user_is_told_nothing[host]",
        danger=LET_IN,
    ),
    Mend(
        "other users come to the doors of real devices",
        "src/qoslab/run/door/process.py",
        """        if not is_own(conn.get_extra_info("socket")):
            conn.abort()
""",
        "        pass\n",
        "tests/unit/test_other_users.py::test_another_user_is_told_nothing[door]",
        danger=LET_IN,
    ),
    Mend(
        "connections that do nothing keep a router from answering",
        "src/qoslab/lab/sshd.py",
        "        if len(self._starting) > MOST_STARTING:\n",
        "        if False:\n",
        "tests/lab/test_iosd.py::test_idle_connections_do_not_stop_a_login",
        danger=LET_IN,
    ),
    Mend(
        "anybody opens ports of a responder without number",
        "crates/ip-sla/src/responder.rs",
        "count() >= MOST_PORTS {",
        "count() > u16::MAX as usize {",
        "ip-sla:ten_thousand_control_messages",
        danger=LET_IN,
    ),
    Mend(
        "secrets of routers lie in run folders",
        "src/qoslab/ios/secrets.py",
        '    r"snmp-server community",\n',
        "",
        "tests/unit/test_ios_secrets.py::test_secrets_are_removed",
        danger=SECRETS,
    ),
    Mend(
        "Ubuntu is told to open namespaces for all programs",
        "src/qoslab/lab/supervision.py",
        "cp {shlex.quote(str(APPARMOR_PROFILE))} ",
        "",
        "tests/unit/test_lab_supervision.py::test_on_ubuntu_a_profile_is_offered_before_the_switch_for_all",
        danger=RIGHTS,
    ),
    Mend(
        "other users reach the workers of a run",
        "src/qoslab/run/cluster/pool.py",
        "        ours, theirs = Pipe()\n",
        """        from multiprocessing.connection import Client, Listener

        cls.listener = Listener(("127.0.0.1", 0))
        theirs = Client(cls.listener.address)
        ours = cls.listener.accept()
""",
        "tests/lab/test_other_users.py::test_nothing_of_a_simulated_run_listens",
        danger=LET_IN,
    ),
    Mend(
        "a responder answers anybody",
        "crates/ip-sla/src/responder.rs",
        "        if !self.allows(from.0) {\n            return Err",
        "        if false {\n            return Err",
        "ip-sla:what_a_control_message_may_not_ask_for",
        danger=LET_IN,
    ),
    Mend(
        "a responder's port is open for weeks",
        "crates/ip-sla/src/responder.rs",
        "        if message.duration_ms > LONGEST_MS {\n",
        "        if false {\n",
        "ip-sla:what_a_control_message_may_not_ask_for",
        danger=LET_IN,
    ),
    Mend(
        "a responder opens privileged ports",
        "crates/ip-sla/src/responder.rs",
        "            if message.port < LEAST_PORT {\n",
        "            if false {\n",
        "ip-sla:what_a_control_message_may_not_ask_for",
        danger=LET_IN,
    ),
    Mend(
        "two responders answer each other for ever",
        "crates/ip-sla/src/responder.rs",
        "            if again {\n",
        "            if false {\n",
        "ip-sla:two_responders_do_not_answer_each_other_for_ever",
        danger=LET_IN,
    ),
    Mend(
        "a password that was typed last is in what is told of a router that falls silent",
        "src/qoslab/run/devices/collector_process.py",
        'text = _WAITED_FOR.sub("", " ".join(str(error).split()))',
        'text = " ".join(str(error).split())',
        "tests/unit/test_collector.py::"
        "test_of_a_router_that_is_silent_neither_what_was_typed_nor_what_was_waited_for_is_told",
        danger=SECRETS,
    ),
    Mend(
        "everybody reads what runs keep of real routers",
        "src/qoslab/results/folder.py",
        "path.mkdir(0o700 if private else 0o777)",
        "path.mkdir()",
        "tests/unit/test_results.py::test_nobody_else_enters_a_run_with_configurations_of_routers",
        danger=SECRETS,
    ),
    Mend(
        "tools in a lab have all capabilities in its user namespace",
        "src/qoslab/lab/rights.py",
        """["setpriv", "--bounding-set=" + ",".join(["-all", *(f"+{name}" for name in allowed)]), "--no-new-privs"]""",
        '["setpriv", "--no-new-privs"]',
        "tests/lab/test_rights.py::test_a_program_may_what_it_needs",
        danger=RIGHTS,
    ),
    Mend(
        "every tool in a lab may what its shells may",
        "src/qoslab/lab/rights.py",
        "PROGRAMS.get(Path(argv0).name, OTHERS)",
        "OTHERS",
        "tests/lab/test_rights.py::test_a_program_may_what_it_needs",
        danger=RIGHTS,
    ),
    Mend(
        "who talks to a router's visitors may enter namespaces",
        "src/qoslab/lab/iosd.py",
        "        keep(SERVING)\n",
        "        keep((*SERVING, *ENTERING))\n",
        "tests/lab/test_rights.py::test_daemons_give_up_what_they_needed_to_start",
        also=(("import SERVING, keep", "import ENTERING, SERVING, keep"),),
        danger=RIGHTS,
    ),
    Mend(
        "a data plane may look into all processes of the lab for good",
        "crates/qos-router/src/rights.rs",
        "    let rest = !(1 << CAP_SYS_PTRACE);\n",
        "    let rest = !0;\n",
        "qos-router:a_data_plane_that_has_its_namespaces_cannot_look_for_others",
        danger=RIGHTS,
    ),
    Mend(
        "keys of servers in blocks of their own lie in run folders",
        "src/qoslab/ios/secrets.py",
        "    return _without_keys(_SECRET.sub(",
        "    return (_SECRET.sub(",
        "tests/unit/test_ios_secrets.py::test_secrets_are_removed",
        danger=SECRETS,
    ),
    Mend(
        "passwords of hosts are shown, and handed to every process that a run starts",
        "src/qoslab/run/devices/inventory.py",
        "HostAccess:\n    _know_secrets(variables)\n",
        "HostAccess:\n",
        "tests/unit/test_lab_inventory.py::test_what_hosts_have_of_passwords_is_kept_out_of_everything",
        danger=SECRETS,
    ),
    Mend(
        "everybody reads the configuration that prepare keeps by hand",
        "playbooks/prepare.yml",
        '        mode: "0600"\n',
        "",
        "tests/unit/test_ansible.py::test_by_hand_a_configuration_is_for_its_user_alone_and_not_printed",
        danger=SECRETS,
    ),
    Mend(
        "whole configurations of real routers are printed",
        "playbooks/roles/ios/tasks/verify.yml",
        '  no_log: "{{ ios_by_hand }}"\n',
        "",
        "tests/unit/test_ansible.py::test_by_hand_a_configuration_is_for_its_user_alone_and_not_printed",
        danger=SECRETS,
    ),
    Mend(
        "a worker sends files without number",
        "src/qoslab/run/cluster/remote.py",
        "            if len(entries) > MOST_FILES:\n",
        "            if False:\n",
        "tests/unit/test_cluster_crew.py::test_what_a_worker_sends_is_bounded[sends_too_many_files]",
        danger=LET_IN,
    ),
    Mend(
        "a worker sends files without end",
        "src/qoslab/run/cluster/remote.py",
        "if (size := sum(entry.file_size for entry in entries)) > MOST_BYTES:",
        "if (size := sum(entry.file_size for entry in entries)) < 0:",
        "tests/unit/test_cluster_crew.py::test_what_a_worker_sends_is_bounded[sends_a_large_file]",
        danger=LET_IN,
    ),
    Mend(
        "a worker writes where it likes",
        "src/qoslab/run/cluster/remote.py",
        "                if not place.is_relative_to(folder.resolve()):\n",
        "                if False:\n",
        "tests/unit/test_cluster_crew.py::test_no_file_of_a_worker_leads_out_of_its_cell",
        danger=LET_IN,
    ),
    Mend(
        "passwords of a router can be guessed over one connection",
        "src/qoslab/lab/sshd.py",
        "self._tries >= TRIES",
        "self._tries >= 10 * TRIES",
        "tests/unit/test_sshd.py::test_three_tries",
        danger=LET_IN,
    ),
    Mend(
        "who never logs in keeps a connection to a router",
        "src/qoslab/lab/sshd.py",
        "            login_timeout=LOGIN_S,\n",
        "            login_timeout=0,\n",
        "tests/unit/test_sshd.py::test_who_does_not_log_in_is_hung_up_on",
        danger=LET_IN,
    ),
)
