"""The mends of weaknesses, each with a change that takes it back and the tests that notice.

What is not here: that all fuzz targets compile. They are a crate of the workspace, which `cargo test` builds.
"""

from __future__ import annotations

from dataclasses import dataclass

CODE = "reading what others wrote does something for them"
NO_END = "reading what others wrote takes time or memory without end"
MISTAKEN = "what others wrote is told as a defect of qoslab"
LET_IN = "others are let in, or get more than they are given"
RIGHTS = "a program has rights that it does not need"
SECRETS = "secrets of devices lie open"
DAMAGE = "what is damaged passes for a result"
FOREIGN = "what was measured otherwise passes for a result of these"
FAULT = "a fault takes more with it than its cell, or is told as another"
INSTALLED = "what is installed is not what was meant, or half of it"
FIGURES = "a model does something else than the device"
DANGERS = (CODE, NO_END, MISTAKEN, LET_IN, RIGHTS, SECRETS, DAMAGE, FOREIGN, FAULT, INSTALLED, FIGURES)
"""What a weakness may lead to; `take_back.py --dangers` counts the mends that stand against each."""


@dataclass(frozen=True)
class Mend:
    """What was wrong once, and a change of one place that makes it wrong again."""

    weakness: str
    path: str
    mended: str
    before: str
    tests: str
    """For pytest; or a crate and a test's name, as `crate:name`, for cargo."""
    danger: str = ""
    """One of `DANGERS`; empty where it is of the checks themselves."""
    also: tuple[tuple[str, str], ...] = ()
    """Further changes of that file, where one mend stands behind another."""

    def taken_back(self, text: str) -> str:
        """The file as it was before. `ValueError` where it has another text by now."""
        for mended, before in ((self.mended, self.before), *self.also):
            if text.count(mended) != 1:
                raise ValueError(f"{self.path} has {text.count(mended)} times, expected once: {mended}")
            text = text.replace(mended, before)
        return text


MENDS = (
    Mend(
        "templates run code",
        "src/qoslab/schema/sandbox.py",
        """        if isinstance(obj, LoopContext):
            return attr in _LOOP
        return isinstance(obj, TemplateModule) and not attr.startswith("_")
""",
        "        return True\n",
        "tests/unit/test_hostile.py",
        also=(("        if not __self.is_safe_callable(__obj):\n", "        if False:\n"),),
        danger=CODE,
    ),
    Mend(
        "a faulty template is a defect of qoslab",
        "src/qoslab/schema/templates.py",
        "    except Exception as error:\n        if isinstance(error, TemplateSyntaxError):\n",
        "    except TemplateSyntaxError as error:\n        if isinstance(error, TemplateSyntaxError):\n",
        "tests/unit/test_hostile.py",
        danger=MISTAKEN,
    ),
    Mend(
        "certificates for an address without encryption are taken in silence",
        "src/qoslab/run/cluster/dask_cluster.py",
        "        if given:\n",
        "        if False:\n",
        "tests/unit/test_cluster_crew.py",
        danger=LET_IN,
    ),
    Mend(
        "lines of a router's own access list that no model knows are lost",
        "src/qoslab/ios/restore.py",
        "    return [*found, *_collisions_unread(own, alone, asked)]\n",
        "    return found\n",
        "tests/unit/test_ios_restore.py::test_lines_that_no_model_knows_are_content",
    ),
    Mend(
        "a cluster's connection may go unencrypted",
        "src/qoslab/run/cluster/dask_cluster.py",
        "distributed.Security(require_encryption=True, **{name: str(path) for name, path in given.items()})",
        "None\n    return security",
        "tests/unit/test_cluster_crew.py",
        danger=LET_IN,
    ),
    Mend(
        "damaged raw results are figures",
        "src/qoslab/results/seal.py",
        "    if found == written or found.sha256 == written.sha256:\n",
        "    if True:\n",
        "tests/unit/test_damage.py",
        danger=DAMAGE,
    ),
    Mend(
        "cells without number",
        "src/qoslab/schema/sweep.py",
        "    if (count := sweep.count) > CELL_LIMIT:\n",
        "    if (count := sweep.count) < 0:\n",
        "tests/unit/test_hostile.py",
        danger=NO_END,
    ),
    Mend(
        "what builds is not locked",
        "qoslab",
        'build=(--build-constraints "$top/requirements/build.txt")',
        "build=()",
        "tests/unit/test_bootstrap.py",
        danger=INSTALLED,
    ),
    Mend(
        "a copied clone runs the other's code",
        "qoslab",
        '    [ "$place" = "$top" ] && [ "$1/bin/python" -ef "$interpreter" ]\n',
        '    [ "$1/bin/python" -ef "$interpreter" ]\n',
        "tests/unit/test_bootstrap.py",
        danger=INSTALLED,
    ),
    Mend(
        "two first starts at once disturb each other",
        "qoslab",
        "    if have flock && ! flock -n 9; then\n",
        "    if false; then\n",
        "tests/unit/test_bootstrap.py",
        danger=INSTALLED,
    ),
    Mend(
        "an environment that is half made stays so",
        "qoslab",
        'logged "$uv" venv --clear --python',
        'logged "$uv" venv --python',
        "tests/unit/test_bootstrap.py",
        danger=INSTALLED,
    ),
    Mend(
        "results of other sources pass for these",
        "src/qoslab/run/identity.py",
        """        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\\n".encode())
""",
        '        digest.update(f"{name}\\n".encode())\n',
        "tests/unit/test_identity.py",
        danger=FOREIGN,
    ),
    Mend(
        "results of another program pass for these",
        "src/qoslab/run/identity.py",
        "    return hashlib.sha256(path.read_bytes()).hexdigest()\n",
        "    return path.name\n",
        "tests/unit/test_identity.py",
        danger=FOREIGN,
    ),
    Mend(
        "one passing fault ends a night",
        "src/qoslab/run/labs/measured.py",
        '        return error.message if isinstance(error, (PassingFault, DataPlaneDownError)) else ""\n',
        '        return ""\n',
        "tests/lab/test_faults.py::test_ansible_that_dies_costs_one_attempt_and_a_collector_none",
        danger=FAULT,
    ),
    Mend(
        "a dead lab has another name",
        "src/qoslab/run/labs/measured.py",
        """        if death := death_of(self.lab, wait=True):
            return death
""",
        "",
        "tests/unit/test_faults.py::test_a_dead_lab_is_the_reason_whatever_it_made_others_say",
        danger=FAULT,
    ),
    Mend(
        "a push that fails in a dead lab is the push's fault",
        "src/qoslab/run/labs/measured.py",
        """        if death := death_of(self.lab, wait=True):
            return death
""",
        "",
        "tests/lab/test_faults.py::test_a_lab_that_dies_during_a_push_is_a_dead_lab",
        also=(("            raise LabDied(death)\n", "            pass\n"),),
        danger=FAULT,
    ),
    Mend(
        "titles are markup of the terminal",
        "src/qoslab/run/progress.py",
        """TextColumn("{task.description}", markup=False)""",
        """TextColumn("{task.description}")""",
        "tests/unit/test_hostile.py",
        danger=CODE,
    ),
    Mend(
        "escape codes of strangers reach the terminal",
        "src/qoslab/printing.py",
        "    return _OBEYED.sub(_escaped, text)\n",
        "    return text\n",
        "tests/unit/test_hostile.py",
        danger=CODE,
    ),
    Mend(
        "a file in a received run is a link to one outside",
        "src/qoslab/results/folder.py",
        "            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):\n",
        "            if False:\n",
        "tests/unit/test_hostile_runs.py",
        danger=CODE,
    ),
    Mend(
        "a cell's folder in a received run is a script, or outside",
        "src/qoslab/results/records.py",
        """    if folder and (parts[0] != "cells" or not {"", ".", ".."}.isdisjoint(parts) or "\\0" in folder):
""",
        "    if parts is None:\n",
        "tests/unit/test_hostile_runs.py",
        danger=CODE,
    ),
    Mend(
        "an expression behind a show command hangs",
        "src/qoslab/ios/regexps.py",
        "        states = self._closed([self._begin], first=True, last=not line)\n",
        "        import re\n\n        return re.search(self.text, line) is not None\n",
        "tests/unit/test_hostile.py",
        danger=NO_END,
    ),
    Mend(
        "a command that is observed writes files",
        "src/qoslab/schema/observations.py",
        "    if kind not in filters.KINDS:\n",
        "    if False:\n",
        "tests/unit/test_hostile.py",
        danger=CODE,
    ),
    Mend(
        "a command that is observed has keys in it",
        "src/qoslab/schema/observations.py",
        """    if control := re.search(r"[^ -~]", command):
""",
        """    if control := re.search("$^", command):
""",
        "tests/unit/test_hostile.py",
        danger=CODE,
    ),
    Mend(
        "a packet of another year takes the machine's memory",
        "src/qoslab/analysis/reading.py",
        """        stray = ~table["time_s"].between(-STRAY_S, latest)
""",
        """        stray = table["time_s"].isna()
""",
        "tests/unit/test_hostile_runs.py",
        danger=NO_END,
    ),
    Mend(
        "power that is lost leaves a valid cell without content",
        "src/qoslab/results/files.py",
        """    with ThreadPoolExecutor(SYNCS, thread_name_prefix="sync") as pool:
        for done in [pool.submit(DISK.sync, path) for path in paths]:
            done.result()
""",
        "    pass\n",
        "tests/unit/test_faulty_disk.py",
        danger=DAMAGE,
    ),
    Mend(
        "a clock that is set goes unnoticed",
        "src/qoslab/results/records.py",
        "        if abs(self.stepped_ns) > CLOCK_STEP_NS:\n",
        "        if False:\n",
        "tests/unit/test_validity.py",
        danger=FOREIGN,
    ),
    Mend(
        "a suspended machine goes unnoticed",
        "src/qoslab/results/records.py",
        "        if abs(self.asleep_ns) > CLOCK_STEP_NS:\n",
        "        if False:\n",
        "tests/unit/test_validity.py",
        danger=FOREIGN,
    ),
    Mend(
        "a terminal that is closed leaves a run without end",
        "src/qoslab/cli/run.py",
        "        signal.signal(signal.SIGHUP, interrupt)\n",
        "        pass\n",
        "tests/lab/test_faults.py::test_a_signal_ends_a_run_as_ctrl_c_does",
        danger=FAULT,
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
        "tests/unit/test_ios_secrets.py",
        danger=SECRETS,
    ),
    Mend(
        "Ubuntu is told to open namespaces for all programs",
        "src/qoslab/lab/supervision.py",
        "cp {shlex.quote(str(APPARMOR_PROFILE))} ",
        "",
        "tests/unit/test_lab_supervision.py",
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
        "a fuzz target is in no check",
        "crates/fuzz-targets/tests/corpus.rs",
        "targets! { bridge config control ",
        "targets! { bridge control ",
        "fuzz-targets:every_corpus_and_every_target_is_replayed",
    ),
    Mend(
        "the text of a note takes hours",
        "src/qoslab/model/comparison.py",
        r"""(?P<what>[^\s{}][^{}]*)\}")""",
        r"""(?P<what>[^{}]+)\}")""",
        "tests/unit/test_hostile.py::test_a_hostile_experiment_is_a_finding[note: blanks]",
        danger=NO_END,
    ),
    Mend(
        "a number of many digits is a defect of qoslab",
        "src/qoslab/model/expressions.py",
        """            if len(found["number"]) > DIGIT_LIMIT:\n""",
        "            if False:\n",
        "tests/unit/test_hostile.py::test_a_hostile_experiment_is_a_finding[expression: digits]",
        danger=MISTAKEN,
    ),
    Mend(
        "brackets in brackets are a defect of qoslab",
        "src/qoslab/model/expressions.py",
        "        if self.depth > DEPTH_LIMIT:\n",
        "        if False:\n",
        "tests/unit/test_hostile.py::test_a_hostile_experiment_is_a_finding[expression: brackets in few words]",
        danger=MISTAKEN,
    ),
    Mend(
        "a key that is no text is a defect of qoslab",
        "src/qoslab/schema/document.py",
        "            text.encode()\n        except UnicodeEncodeError as error:\n",
        '            text.encode("utf-8", "surrogatepass")\n        except UnicodeEncodeError as error:\n',
        "tests/unit/test_hostile.py::test_a_hostile_experiment_is_a_finding[YAML: a key that is no text]",
        danger=MISTAKEN,
    ),
    Mend(
        "a template is any file of the reader",
        "src/qoslab/schema/files.py",
        """return "" if inside else f"expected""",
        """return "" if True else f"expected""",
        "tests/unit/test_hostile.py::test_links_lead_nowhere_else",
        danger=CODE,
    ),
    Mend(
        "one broken experiment ends the list of all",
        "src/qoslab/cli/listing.py",
        "    except Exception as error:  # one",
        "    except QoslabError as error:  # one",
        "tests/unit/test_hostile.py::test_one_experiment_that_a_defect_meets_is_listed_among_the_others",
        danger=MISTAKEN,
    ),
    Mend(
        "a script in a received run is run",
        "src/qoslab/report/html.py",
        """" ".join(_hash(each) for each in (plotly, script) if each) or "'none'\"""",
        """"'unsafe-inline'\"""",
        "tests/unit/test_hostile_runs.py::test_a_whole_run_is_reported",
        danger=CODE,
    ),
    Mend(
        "an emptied configuration is a defect of qoslab",
        "src/qoslab/report/arms.py",
        '    except (ValueError, RecursionError):\n        return content or "(the file is empty)"\n',
        "    except RecursionError:\n        return content\n",
        "tests/unit/test_hostile_runs.py::test_damage_is_no_fault_of_qoslab",
        danger=MISTAKEN,
    ),
    Mend(
        "figures of another shape are a defect of qoslab",
        "src/qoslab/overview.py",
        "    except (TypeError, KeyError, AttributeError, ValueError):\n",
        "    except KeyError:\n",
        "tests/unit/test_hostile.py::test_list_shows_foreign_titles_and_what_is_broken",
        danger=MISTAKEN,
    ),
    Mend(
        "what a killed run left stays",
        "src/qoslab/run/scratch.py",
        "            if not _alive(owner):\n",
        "            if False:\n",
        "tests/unit/test_scratch.py::test_the_next_run_removes_what_even_the_guard_left",
        danger=FAULT,
    ),
    Mend(
        "a collector that died stays so",
        "src/qoslab/run/devices/collector.py",
        "            if self._collector is not None and self._collector.over:\n",
        "            if False:\n",
        "tests/unit/test_collector.py::test_a_shared_one_that_is_killed_is_started_again",
        danger=FAULT,
    ),
    Mend(
        "a line that is no answer ends the collector",
        "src/qoslab/run/helper.py",
        "who waits for an answer goes on waiting.\n                continue\n",
        "\n                break\n",
        "tests/unit/test_collector.py::test_a_line_that_is_no_answer",
        danger=FAULT,
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
        "a first start without network says nothing of it",
        "qoslab",
        """    if tail -c +"$((from + 1))" "$log" | grep -qiE "$unreachable"; then\n""",
        "    if false; then\n",
        "tests/unit/test_bootstrap.py::test_without_network",
        danger=INSTALLED,
    ),
    Mend(
        "packages are installed where none may be",
        "qoslab",
        """    if [ -n "${QOSLAB_NO_APT:-}" ] || """,
        "    if ",
        "tests/unit/test_bootstrap.py::test_no_package_is_installed_where_none_may_be",
        danger=INSTALLED,
    ),
    Mend(
        "a packet of exactly what the excess bucket has violates",
        "crates/qos-core/src/meter/token_bucket.rs",
        "                if needed > self.excess {\n",
        "                if needed >= self.excess {\n",
        "qos-core:buckets_at_exact_equality",
        danger=FIGURES,
    ),
    Mend(
        "what is left of a nanosecond is lost",
        "crates/qos-core/src/link/serialiser.rs",
        "if ready > self.free { 0 }",
        "if ready >= self.free { 0 }",
        "qos-core:a_frame_that_is_ready_when_the_link_is_free_waits_for_the_rest_of_the_nanosecond",
        danger=FIGURES,
    ),
    Mend(
        "frames that are not IP are policed",
        "crates/qos-core/src/policy.rs",
        "        if !descriptor.is_ip() {\n            return true;\n        }\n        let bytes",
        "        let bytes",
        "qos-core:frames_that_are_not_ip_are_not_policed",
        danger=FIGURES,
    ),
    Mend(
        "a precedence clears the rest of the code point",
        "crates/qos-core/src/classify/marking.rs",
        "((value as u8 & 0x07) << 3) | descriptor.dscp & 0x07;",
        "(value as u8 & 0x07) << 3;",
        "qos-core:a_precedence_is_three_bits",
        danger=FIGURES,
    ),
    Mend(
        "neq means eq in an access list",
        "crates/qos-core/src/classify/access_list.rs",
        "PortOperator::Neq => !wanted",
        "PortOperator::Neq => wanted",
        "qos-core:entries_with_ports",
        danger=FIGURES,
    ),
    Mend(
        "gt means ge in an access list",
        "crates/qos-core/src/classify/access_list.rs",
        "PortOperator::Gt => port > wanted",
        "PortOperator::Gt => port >= wanted",
        "qos-core:entries_with_ports",
        danger=FIGURES,
    ),
    Mend(
        "a deny with ports is of later fragments too",
        "crates/qos-core/src/classify/access_list.rs",
        "LaterFragments::ByNetworkLayer && entry.action == AccessAction::Permit;",
        "LaterFragments::ByNetworkLayer;",
        "qos-core:denies_and_later_fragments",
        danger=FIGURES,
    ),
    Mend(
        "established matches every segment",
        "crates/qos-core/src/classify/access_list.rs",
        "        && (!entry.established || descriptor.established)\n",
        "",
        "qos-core:entries_without_ports",
        danger=FIGURES,
    ),
    Mend(
        "an ICMP type matches every message",
        "crates/qos-core/src/classify/access_list.rs",
        "        && entry.icmp_type.is_none_or(|wanted| descriptor.icmp.is_some_and(|(kind, _)| kind == wanted))\n",
        "",
        "qos-core:entries_without_ports",
        danger=FIGURES,
    ),
    Mend(
        "BGP has another port",
        "crates/qos-core/src/classify/matcher.rs",
        "port(179)",
        "port(180)",
        "qos-core:protocols_by_name",
        danger=FIGURES,
    ),
    Mend(
        "SMTP has another port",
        "crates/qos-core/src/classify/matcher.rs",
        "port(25)",
        "port(26)",
        "qos-core:protocols_by_name",
        danger=FIGURES,
    ),
    Mend(
        "a sender is a hundred times as far ahead of its link",
        "crates/qos-core/src/link/inbound.rs",
        "self.backlog.len() >= LINK_BACKLOG_FRAMES {",
        "self.backlog.len() >= 100 * LINK_BACKLOG_FRAMES {",
        "qos-core:a_link_holds_so_many_frames",
        danger=FIGURES,
    ),
    Mend(
        "a password that was typed last is in what is told of a router that falls silent",
        "src/qoslab/run/devices/collector_process.py",
        'text = _WAITED_FOR.sub("", " ".join(str(error).split()))',
        'text = " ".join(str(error).split())',
        "tests/unit/test_collector.py::"
        "test_of_a_router_that_is_silent_neither_what_was_typed_nor_what_was_waited_for_is_told",
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
        "a stranger's package of the name qoslab is installed in CI on GitLab",
        "templates/qoslab.gitlab-ci.yml",
        ': "${QOSLAB:?set it to the wheel of qoslab}"',
        "QOSLAB=${QOSLAB:-qoslab}",
        "tests/unit/test_templates.py::test_nothing_is_installed_where_no_wheel_is_named",
        danger=INSTALLED,
    ),
    Mend(
        "a stranger's package of the name qoslab is installed in CI on GitHub",
        "project/.github/workflows/qos.yml",
        "QOSLAB: ${{ vars.QOSLAB }}",
        "QOSLAB: qoslab",
        "tests/unit/test_templates.py::test_the_files_have_no_wheel_of_their_own",
        danger=INSTALLED,
    ),
    Mend(
        "frames of a stop right behind the reading of the clock are as early as that",
        "crates/qos-router/src/clock.rs",
        "            event.min(self.now())\n",
        "            read\n",
        "qos-router:a_frame_that_came_since_the_clock_was_read_came_then",
        danger=FIGURES,
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
        "a run confirms that a router erases its flash, with the image it starts from",
        "src/qoslab/run/door/login.py",
        '    re.compile(r"\\b(?:eras|format)[^\\r\\n]*\\[confirm\\] ?$", re.IGNORECASE): b"n",\n',
        "",
        "tests/unit/test_dead_man.py::test_flash_keeps_its_files_where_the_router_offers_to_erase_it",
    ),
    Mend(
        "whoever rescues stops the countdown of another's run and takes off what that has configured",
        "src/qoslab/run/rescue.py",
        "            refuse_marked(door.ask, ways, state.mark())\n",
        "",
        "tests/unit/test_mark.py::test_whoever_rescues_leaves_a_router_that_another_run_has_by_now",
    ),
    Mend(
        "keys of servers in blocks of their own lie in run folders",
        "src/qoslab/ios/secrets.py",
        "    return _without_keys(_SECRET.sub(",
        "    return (_SECRET.sub(",
        "tests/unit/test_ios_secrets.py",
    ),
    Mend(
        "passwords of hosts are shown, and handed to every process that a run starts",
        "src/qoslab/run/devices/inventory.py",
        "HostAccess:\n    _know_secrets(variables)\n",
        "HostAccess:\n",
        "tests/unit/test_lab_inventory.py::test_what_hosts_have_of_passwords_is_kept_out_of_everything",
    ),
    Mend(
        "a countdown that the router would not stop is forgotten",
        "src/qoslab/run/door/dead_man.py",
        "            if reason := stop(self._ask, router, choice):\n",
        '            if reason := stop(self._ask, router, choice) and "":\n',
        "tests/unit/test_dead_man.py::test_what_could_not_be_stopped_is_told_and_kept",
    ),
    Mend(
        "another run begins before the countdown is stopped, and loses its own",
        "src/qoslab/run/door/mark.py",
        "        self._inner.disarm()\n        for router in list(self.marked):\n"
        "            unmark(self._ask, router, self._who)\n            self.marked.remove(router)\n",
        "        for router in list(self.marked):\n            unmark(self._ask, router, self._who)\n"
        "            self.marked.remove(router)\n        self._inner.disarm()\n",
        "tests/unit/test_mark.py::test_the_mark_stays_until_the_countdown_is_stopped",
    ),
    Mend(
        "a run behind sudo moves the card by which the host is reached",
        "src/qoslab/run/labs/external/agent/kernel.py",
        "    while not said and process > 1:\n",
        "    while False:\n",
        "tests/unit/test_agent.py::test_behind_sudo_the_way_in_is_known_by_who_started_it",
    ),
    Mend(
        "a run takes a card out of its bridge and never puts it back",
        "src/qoslab/run/labs/external/agent/card.py",
        "    if master is not None:\n",
        "    if False:\n",
        "tests/unit/test_agent.py::test_what_the_machine_needs_itself_is_not_moved",
    ),
    Mend(
        "a host keeps the experiment's route beside its own of another metric",
        "src/qoslab/run/labs/external/agent/settings.py",
        '        metric = metric_of(shown[0]) if shown else CONNECTED_METRIC if ipv6 else ""\n',
        '        metric = ""\n',
        "tests/lab/test_external_hosts.py::test_a_card_with_metrics_flags_and_lifetimes_comes_back_as_it_was",
    ),
    Mend(
        "processes of ours import from the current folder",
        "src/qoslab/programs.py",
        'return [sys.executable, "-P", "-m", name, *arguments]',
        'return [sys.executable, "-m", name, *arguments]',
        "tests/unit/test_planted.py",
    ),
    Mend(
        "what excludes and constrains combinations is not bounded",
        "src/qoslab/schema/sweep.py",
        "        work += matrix.count * matrix.tests\n",
        "",
        "tests/unit/test_hostile.py::test_a_hostile_experiment_is_a_finding[matrix: excluded often]",
    ),
    Mend(
        "what is expected of all combinations is not bounded",
        "src/qoslab/schema/document.py",
        "        self.looks.work += work\n",
        "",
        "tests/unit/test_hostile.py::test_a_hostile_experiment_is_a_finding[comparison: expected often]",
    ),
    Mend(
        "an inventory is read by an ansible.cfg of the current folder",
        "src/qoslab/run/devices/inventory.py",
        "environment = {**_TAKEN, **own, **os.environ, **plain}",
        "environment = {**_TAKEN, **os.environ, **plain}",
        "tests/unit/test_inventory.py::test_nothing_beside_the_caller_is_obeyed",
    ),
    Mend(
        "an inventory has variables of the current folder",
        "src/qoslab/run/devices/inventory.py",
        '"-i", str(source), "--playbook-dir", str(playbooks), *arguments]',
        '"-i", str(source), *arguments]',
        "tests/unit/test_inventory.py::test_nothing_beside_the_caller_is_obeyed",
    ),
    Mend(
        "the name of an arm in a manifest leads out of the run",
        "src/qoslab/results/records.py",
        "    arm: Annotated[str, AfterValidator(_part)]\n",
        "    arm: str\n",
        "tests/unit/test_hostile_runs.py::test_a_hostile_run_is_a_finding_or_an_invalid_cell[an arm elsewhere]",
    ),
    Mend(
        "a received run names the inventory and the experiment that --resume runs",
        "src/qoslab/cli/run.py",
        "    if not kind_at(recorded.lab).placed:\n",
        "    if True:\n",
        "tests/unit/test_external.py::test_nothing_that_reaches_a_device_is_taken_from_a_run",
    ),
    Mend(
        "run.json of another shape is a defect of qoslab",
        "src/qoslab/results/folder.py",
        "        return _parsed(RunOptions, path, text)\n",
        "        return RunOptions.model_construct(**json.loads(text))\n",
        "tests/unit/test_hostile_runs.py::test_what_a_run_was_asked_for_is_read_with_care",
    ),
    Mend(
        "Jupyter runs a configuration of the current folder",
        "src/qoslab/cli/notebook.py",
        "with chdir(sys.prefix):",
        "with chdir(Path.cwd()):",
        "tests/unit/test_planted.py::test_a_notebook",
    ),
    Mend(
        "a notebook's kernel imports from the current folder before any cell is run",
        "src/qoslab/cli/notebook.py",
        '{"PYTHONSAFEPATH": "1", **os.environ}',
        "dict(os.environ)",
        "tests/unit/test_planted.py::test_a_notebook",
    ),
    Mend(
        "a number beyond all in what a run says ends those who watch it",
        "src/qoslab/live/tail.py",
        "json.loads(line, parse_int=_whole, parse_float=_real, parse_constant=_none)",
        "json.loads(line)",
        "tests/unit/test_hostile_runs.py::test_what_a_hostile_run_says_is_told_or_left_out",
    ),
    Mend(
        "a damaged table is a defect of qoslab",
        "src/qoslab/results/tables.py",
        "pa.ArrowException, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:",
        "pa.ArrowInvalid) as error:",
        "tests/unit/test_damage.py::test_no_flipped_byte_of_a_table_is_a_fault_of_qoslab",
    ),
    Mend(
        "a table of somebody else takes all memory",
        "src/qoslab/results/tables.py",
        "    if size > TEXT_MOST:\n",
        "    if False:\n",
        "tests/unit/test_hostile_runs.py::test_a_hostile_table_is_told",
    ),
    Mend(
        "a control socket without descriptors keeps the data plane from resting",
        "crates/qos-router/src/control.rs",
        "            Err(_) => self.rests_until = now + REST,\n",
        "            Err(_) => {}\n",
        "qos-router:a_process_without_descriptors_rests_before_it_takes_a_connection",
        danger=FAULT,
    ),
    Mend(
        "a cell of a run may last for years",
        "src/qoslab/results/folder.py",
        "        _check_limits(self.experiment_file, found)\n",
        "",
        "tests/unit/test_hostile_runs.py::test_a_packet_within_the_time_of_an_experiment_of_years_costs_nothing",
    ),
    Mend(
        "a packet far from all others costs all memory",
        "src/qoslab/analysis/series.py",
        "    each = -(-values // VALUES_MOST)\n",
        "    each = 1 if values else 0\n",
        "tests/unit/test_hostile_runs.py::test_a_packet_within_the_time_of_an_experiment_of_years_costs_nothing",
    ),
    Mend(
        "intervals of no length cost all memory",
        "src/qoslab/analysis/goodput.py",
        "    if steps > (most := max(1, PAIRS_MOST // len(starts))):\n",
        "    if steps < (most := 0):\n",
        "tests/unit/test_hostile_runs.py::test_intervals_of_no_length_take_no_memory",
    ),
    Mend(
        "what was changed on routers is read without bound",
        "src/qoslab/results/changes.py",
        "read_bytes(file, CHANGES_MOST)",
        "read_bytes(file, file.stat().st_size)",
        "tests/unit/test_hostile_runs.py::test_changes_without_end_say_nothing",
    ),
    Mend(
        "one record that is another cell's keeps the rest of a run from being reported",
        "src/qoslab/analysis/run.py",
        "        except MisfitError as error:\n",
        "        except ZeroDivisionError as error:\n",
        "tests/unit/test_hostile_runs.py::test_a_record_that_does_not_fit_is_a_problem_of_its_cell",
        also=(("(error.message,)", "(str(error),)"),),
    ),
    Mend(
        "a cell is kept that other code has found valid",
        "src/qoslab/run/identity.py",
        " and inner.as_posix() not in DECIDING:\n",
        ":\n",
        "tests/unit/test_identity.py::test_nothing_that_decides_whether_a_cell_is_valid_is_left_out",
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
        "a worker of another version has a say",
        "src/qoslab/run/cluster/remote.py",
        "    if found != own:\n",
        "    if False:\n",
        "tests/unit/test_cluster_crew.py::test_one_that_comes_in_mid_run_is_refused",
        danger=FOREIGN,
    ),
    Mend(
        "a lab that always fails is tried for all cells of a night",
        "src/qoslab/run/schedule.py",
        "        if faults >= FAULTS_IN_A_ROW:\n",
        "        if False:\n",
        "tests/unit/test_schedule.py::test_a_lab_that_always_fails_ends_the_run",
        danger=FAULT,
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
    Mend(
        "packages do not come through a proxy",
        "qoslab",
        "run=(sudo --preserve-env=http_proxy,https_proxy,no_proxy,HTTP_PROXY,HTTPS_PROXY,NO_PROXY)",
        "run=(sudo --preserve-env=http_proxy,https_proxy,no_proxy,HTTP_PROXY,NO_PROXY)",
        "tests/unit/test_bootstrap.py::test_behind_a_proxy_packages_come_through_it[HTTPS_PROXY]",
        danger=INSTALLED,
    ),
    Mend(
        "combinations without number are planned",
        "src/qoslab/model/matrix.py",
        "COMBINATION_LIMIT = 200_000\n",
        "COMBINATION_LIMIT = 10**12\n",
        "tests/unit/test_hostile.py::test_combinations_are_counted_before_they_are_made",
        danger=NO_END,
    ),
    Mend(
        "a template works without end",
        "src/qoslab/schema/sandbox.py",
        "WORK_LIMIT = 200_000\n",
        "WORK_LIMIT = 10**12\n",
        "tests/unit/test_template_limits.py::test_a_template_that_goes_further_is_refused_by_its_limit[work]",
        danger=NO_END,
    ),
    Mend(
        "a value of a template takes the machine's memory",
        "src/qoslab/schema/sandbox.py",
        "VALUE_LIMIT = 2**16\n",
        "VALUE_LIMIT = 2**60\n",
        "tests/unit/test_template_limits.py::test_a_template_that_goes_further_is_refused_by_its_limit[value]",
        danger=NO_END,
    ),
    Mend(
        "a template counts to any number",
        "src/qoslab/schema/sandbox.py",
        "RANGE_LIMIT = 10_000\n",
        "RANGE_LIMIT = 10**13\n",
        "tests/unit/test_template_limits.py::test_a_template_that_goes_further_is_refused_by_its_limit[range]",
        danger=NO_END,
    ),
    Mend(
        "a loss of power leaves half a record of a cell",
        "src/qoslab/results/folder.py",
        "            sync_all(self.path)\n            replace(self.record_file, sealed(_json(record)))\n",
        "            write_once(self.record_file, sealed(_json(record)))\n            sync_all(self.path)\n",
        "tests/unit/test_faulty_disk.py::test_power_may_be_lost_at_any_moment[here-and names of empty files]",
    ),
    Mend(
        "an experiment file that somebody added passes for the run's",
        "src/qoslab/results/folder.py",
        "        named = self.manifest().files if self.finished else None\n",
        "        named = None\n",
        "tests/unit/test_damage.py::test_an_added_experiment_file_is_told_and_not_taken",
    ),
    Mend(
        "damage of what was changed on routers passes unnoticed",
        "src/qoslab/results/changes.py",
        "    if not whole:\n",
        "    if False:\n",
        "tests/unit/test_damage.py::test_damage_of_what_was_changed_on_routers_is_named",
    ),
)
