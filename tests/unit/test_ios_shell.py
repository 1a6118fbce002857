"""Command line: the behaviour that clients rely on and the display at the keyboard."""

from __future__ import annotations

import asyncio
import re
from dataclasses import fields
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from fake_router import FakeRouter, type_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from levels import example_count
from qoslab.ios.cli import output_filters
from qoslab.ios.cli.grammar import CliError
from qoslab.ios.cli.terminal import Terminal
from qoslab.ios.config import device_capabilities
from qoslab.ios.environment import DataPlaneDownError
from qoslab.ios.exec import EXEC
from qoslab.ios.model.ip_sla import IpSla
from qoslab.ios.shell import Shell

LONG = "terminal length 0\r"


def output_after(text: str, command: str) -> str:
    """Return the output between a command's echo and the last prompt."""
    return text.split(command + "\n", 1)[1].rpartition("\n")[0] + "\n"


# Prompts and modes


def test_first_prompt_needs_no_input() -> None:
    assert type_lines(FakeRouter(), "", privilege=1) == "\nR1>"
    assert type_lines(FakeRouter(), "") == "\nR1#"


def test_long_prompt_of_configuration_mode_is_cut() -> None:
    router = FakeRouter()
    router.device.hostname = "BRANCH-OFFICE-ROUTER-42"
    text = type_lines(router, "configure terminal\rinterface FastEthernet0/0\rend\r")
    prompts = [line.split("#")[0] for line in text.splitlines() if line.startswith("BRANCH")]
    name = "BRANCH-OFFICE-ROUTER"
    assert prompts == [f"{name}-42", f"{name}(config)", f"{name}(config-)", f"{name}-42"]


def test_new_hostname_appears_in_the_next_prompt() -> None:
    text = type_lines(FakeRouter(), "conf t\rhostname R-2.lab\rend\r")
    assert text.endswith("R1(config)#hostname R-2.lab\nR-2.lab(config)#end\nR-2.lab#")


def test_sub_modes_are_left_by_commands_of_outer_modes() -> None:
    text = type_lines(FakeRouter(), "conf t\rpolicy-map P\rclass class-default\rint fa0/1\rexit\rexit\r")
    prompts = [line.split("#")[0] for line in text.splitlines() if line.startswith("R1")]
    assert prompts == [
        "R1",
        "R1(config)",
        "R1(config-pmap)",
        "R1(config-pmap-c)",
        "R1(config-if)",
        "R1(config)",
        "R1",
    ]


def test_control_z_executes_the_line_and_leaves() -> None:
    router = FakeRouter()
    text = type_lines(router, "conf t\rint fa0/1\rdescription here\x1a")
    assert router.device.interfaces["FastEthernet0/1"].description == "here"
    assert text.endswith("^Z\nR1#")


def test_control_c_leaves_configuration_without_executing_the_line() -> None:
    router = FakeRouter()
    text = type_lines(router, "conf t\rint fa0/1\rdescription here\x03")
    assert router.device.interfaces["FastEthernet0/1"].description is None
    assert text.endswith("R1#")


def test_do_command_runs_exec_commands_in_configuration_mode() -> None:
    text = type_lines(FakeRouter(), "conf t\rint fa0/1\rdo show privilege\r")
    assert text.endswith("R1(config-if)#do show privilege\nCurrent privilege level is 15\nR1(config-if)#")


def test_user_mode_lacks_privileged_commands() -> None:
    text = type_lines(FakeRouter(), "configure terminal\r", privilege=1)
    assert text == "\nR1>configure terminal\n   ^\n% Invalid input detected at '^' marker.\n\nR1>"


# Privilege


def test_enable_secret_is_not_echoed() -> None:
    text = type_lines(FakeRouter(), "enable\ropensesame\rshow privilege\r", privilege=1)
    assert text == "\nR1>enable\nPassword: \nR1#show privilege\nCurrent privilege level is 15\nR1#"


def test_enable_allows_three_attempts() -> None:
    text = type_lines(FakeRouter(), "enable\ra\rb\rc\rshow privilege\r", privilege=1)
    assert text.count("Password: ") == 3
    assert "% Bad secrets\n" in text
    assert text.endswith("Current privilege level is 1\nR1>")
    assert "opensesame" not in text


def test_disable_and_logout_change_the_session() -> None:
    assert type_lines(FakeRouter(), "disable\rlogout\rshow clock\r") == "\nR1#disable\nR1>logout\n"


# Errors


@pytest.mark.parametrize(
    ("line", "caret", "message"),
    [
        ("show foo", 8, "% Invalid input detected at '^' marker.\n"),
        ("show interfaces fa0/7", 19, "% Invalid input detected at '^' marker.\n"),
        ("show clock extra", 14, "% Invalid input detected at '^' marker.\n"),
        ("terminal length 513", 19, "% Invalid input detected at '^' marker.\n"),
        ("show clock | frobnicate x", 16, "% Invalid input detected at '^' marker.\n"),
        ("clear counters | include x", 18, "% Invalid input detected at '^' marker.\n"),
    ],
)
def test_caret_position_includes_the_prompt(line: str, caret: int, message: str) -> None:
    assert type_lines(FakeRouter(), line + "\r") == f"\nR1#{line}\n{'^':>{caret + 1}}\n{message}\nR1#"


def test_ambiguous_and_incomplete_commands_are_refused() -> None:
    assert '% Ambiguous command:  "show p"\n' in type_lines(FakeRouter(), "show p\r")
    assert "show\n% Incomplete command.\n\nR1#" in type_lines(FakeRouter(), "show\r")
    assert "% Incomplete command.\n" in type_lines(FakeRouter(), "show clock | include\r")


def test_blank_lines_and_comments_do_nothing() -> None:
    assert type_lines(FakeRouter(), "\r  \r! note\rconf t\r\r!\r").endswith("R1(config)#\nR1(config)#!\nR1(config)#")


def test_line_that_the_data_plane_refuses_changes_nothing() -> None:
    router = FakeRouter()
    router.refuse = "interfaces.FastEthernet0/1: bandwidth too small"
    before = router.device.copy()
    text = type_lines(router, "conf t\rint fa0/1\rbandwidth 10\r")
    assert "% Error: interfaces.FastEthernet0/1: bandwidth too small\nR1(config-if)#" in text
    assert router.device == before


def test_dead_data_plane_does_not_end_the_login() -> None:
    class Dead(FakeRouter):
        async def counters(self, interface: str | None = None) -> object:  # type: ignore[override]
            raise DataPlaneDownError("control.sock: connection refused")

    text = type_lines(Dead(), "show interfaces\rshow privilege\r")
    assert "show interfaces\n% Data plane is not responding\nR1#show privilege\nCurrent" in text


# What arrives


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", "\r\0"])
def test_every_line_ending_is_accepted(end: str) -> None:
    assert type_lines(FakeRouter(), end.join(["show privilege", "show privilege", ""])).count("level is 15\nR1#") == 2


def test_type_ahead_answers_questions_in_order() -> None:
    router = FakeRouter()
    text = type_lines(router, LONG + "copy  running-config startup-config\r\rshow privilege\r")
    assert "Destination filename [startup-config]? \nBuilding configuration...\n[OK]\nR1#show privilege\n" in text
    assert router.startup is not None
    assert router.startup.endswith("end\n")


def test_banner_text_is_stored_unchanged() -> None:
    router = FakeRouter()
    type_lines(router, "conf t\rbanner motd @\nhello\n exit\n@\nend\r")
    assert router.device.banner_motd == "\nhello\n exit\n"
    assert type_lines(router, "").startswith("\n\nhello\n exit\n\nR1#")


@pytest.mark.parametrize(
    "keys",
    [
        "shoq\x7fw cloxx\x08\x08ck\r",
        "garbage\x15show clock\r",
        "show garbage\x17clock\r",
        "how clock\x01s\r",
        "show cock\x1b[D\x1b[D\x1b[Dl\r",
        "show clockxx\x02\x02\x0b\r",
        "show clo\t\r",
    ],
)
def test_line_editing_keys_work(keys: str) -> None:
    assert "UTC Mon Mar 2 2026" in type_lines(FakeRouter(), keys)


def test_history_keys_work() -> None:
    assert type_lines(FakeRouter(), "show clock\r\x1b[A\r\x10\x10\r").count("UTC Mon Mar 2 2026") == 3


@given(st.lists(st.sampled_from([*"ab c", "\x7f", "\x02", "\x06", "\x01", "\x05", "\x17", "\x15", "\x0b", "\x04"])))
@settings(max_examples=example_count(200), deadline=None)
def test_terminal_shows_the_edited_line(keys: list[str]) -> None:
    """Compare with a terminal that obeys backspaces: it shows exactly the executed line, for any input."""
    screen, cursor = "", 0
    printed: list[str] = []

    async def run() -> str:
        terminal = Terminal(printed.append)
        # Control-D on an empty line ends the login; the first character keeps it from being empty.
        terminal.feed("".join(["x\x05", *keys, "\x05", "\r"]))
        terminal.end_input()
        return await terminal.read_command("")

    try:
        line = asyncio.run(run())
    except Exception as error:
        assert type(error).__name__ == "ClientDisconnected"
        assert "\x04" in keys
        return
    for character in "".join(printed).removesuffix("\r\n"):
        if character == "\b":
            cursor -= 1
        else:
            screen = screen[:cursor] + character + screen[cursor + 1 :]
            cursor += 1
        assert cursor >= 0
    assert screen.rstrip() == line.rstrip()


# Help


def test_help_lists_commands_and_redisplays_the_line() -> None:
    text = type_lines(FakeRouter(), "show ip ?\r")
    assert "R1#show ip ?\n" in text
    assert "\n  route         IP routing table\n" in text
    assert "\n\nR1#show ip \n% Incomplete command.\n" in text


def test_help_completes_words() -> None:
    assert type_lines(FakeRouter(), "sh?") == "\nR1#sh?\nshow  \n\nR1#sh"


def test_help_on_running_config_lists_options_and_the_line_runs() -> None:
    text = type_lines(FakeRouter(), LONG + "show running-config ?\r")
    assert "\n  all         Configuration with defaults\n" in text
    assert "\n  <cr>\n\nR1#show running-config \nBuilding configuration...\n" in text


def test_help_is_available_in_configuration_mode_and_after_do_and_pipes() -> None:
    text = type_lines(FakeRouter(), "conf t\rint fa0/1\rserv?\x15do show cl?\x15do show clock | ?")
    assert "service-policy  \n" in text
    assert "class-map  clock  \n" in text
    assert "\n  include  Include lines that match\n" in text


def test_help_lists_commands_after_do() -> None:
    text = type_lines(FakeRouter(), "terminal length 0\rconf t\r?\x15do?\x15d?\x15int fa0/1\rde?")
    assert "  do  " in text.split("(config)#?")[1]
    assert "(config)#do?\ndo  dot11  dot1x  \n" in text
    words = "decnet  default  default-value  define  dial-peer  dialer-list  dlsw  do  dot11  dot1x  dspfarm  dspu"
    assert f"d?\n{words}  \n" in text
    assert "(config-if)#de?\ndecnet  default  delay  description  \n" in text


def test_help_on_an_unknown_command_is_refused() -> None:
    assert "% Unrecognized command\nR1#frobnicate " in type_lines(FakeRouter(), "frobnicate ?")


# Output


def test_output_is_paged_by_24_lines_unless_length_is_0() -> None:
    text = type_lines(FakeRouter(), "show running-config\rq")
    page = output_after(text, "show running-config").split(" --More-- ")[0]
    assert page.count("\n") == 23
    assert "end" not in text
    whole = type_lines(FakeRouter(), "show running-config\r  \r")
    assert "\nend\n" in whole
    assert " --More-- " not in type_lines(FakeRouter(), LONG + "show running-config\r")


def test_enter_shows_one_more_line() -> None:
    shown = type_lines(FakeRouter(), "terminal length 5\rshow version\r\r\rq")
    assert shown.count(" --More-- ") == 3
    assert "Compiled" in shown
    assert "ROM:" in shown
    assert "uptime" not in shown


@pytest.mark.parametrize(
    ("pipe", "kept"),
    [
        ("include ^interface", ["interface FastEthernet0/0", "interface FastEthernet0/1"]),
        ("inc hostname|version", ["version 12.4", "hostname R1"]),
        ("i ^ip route .+ |^hostname .+", ["hostname R1"]),
        ("count address", ["Number of lines which match regexp = 2"]),
        ("begin ^line vty", ["line vty 0 4", " login", "!", "end", ""]),
        (
            "section FastEthernet0/1",
            ["interface FastEthernet0/1", " ip address 192.168.20.1 255.255.255.0", " duplex auto", " speed auto"],
        ),
    ],
)
def test_output_filters_work(pipe: str, kept: list[str]) -> None:
    command = f"show running-config | {pipe}"
    text = type_lines(FakeRouter(), f"{LONG}{command}\r")
    assert output_after(text, command).splitlines() == kept


def test_exclude_prints_the_other_lines() -> None:
    assert output_filters.parse("x | exclude ^ ", 3).apply("a\n b\nc\n") == "a\nc\n"


@given(st.text(alphabet="ab *+?()[]|\\^$.", min_size=1).filter(str.strip))
def test_any_expression_is_accepted_or_refused(expression: str) -> None:
    try:
        kept = output_filters.parse(f"| include {expression}", 1).apply("a\nb\nab\n")
    except CliError:
        return
    assert set(kept.splitlines()) <= {"a", "b", "ab"}


# Configurations


def test_startup_configuration_is_saved_shown_and_erased() -> None:
    router = FakeRouter()
    assert "startup-config is not present\n" in type_lines(router, "show startup-config\r")
    assert "Building configuration...\n[OK]\n" in type_lines(router, "write\r")
    saved = type_lines(router, LONG + "show startup-config\r")
    assert "Using " in saved
    assert "\nhostname R1\n" in saved
    type_lines(router, "write erase\rn")
    assert router.startup is not None
    type_lines(router, "write erase\r\r")
    assert router.startup is None


def test_configuration_output_is_repeatable() -> None:
    command = "show running-config"
    twice = type_lines(FakeRouter(), f"{LONG}{command}\r{command}\r").split(command + "\n")
    assert twice[1].removesuffix("R1#") == twice[2].removesuffix("R1#")


def test_show_running_config_prints_one_interface() -> None:
    command = "show running-config interface fa0/1"
    assert output_after(type_lines(FakeRouter(), f"{LONG}{command}\r"), command) == (
        "Building configuration...\n\nCurrent configuration : 96 bytes\n!\ninterface FastEthernet0/1\n"
        " ip address 192.168.20.1 255.255.255.0\n duplex auto\n speed auto\nend\n\n"
    )


def test_reload_asks_to_save_and_to_confirm() -> None:
    router = FakeRouter()
    text = type_lines(router, "reload\rmaybe\rno\rn")
    assert "% Please answer 'yes' or 'no'.\n" in text
    assert (router.reloads, router.startup) == (0, None)
    type_lines(router, "reload\ryes\r\r")
    assert router.reloads == 1
    assert router.startup is not None
    assert "modified" not in type_lines(router, "reload\r\r")
    assert router.reloads == 2


def test_clear_counters_needs_confirmation() -> None:
    router = FakeRouter()
    type_lines(router, "clear counters\rn" + "clear counters fa0/1\r\r" + "clear counters\ry")
    assert router.cleared_interfaces == ["FastEthernet0/1", None]


# Ping


def test_ping_counts_answers() -> None:
    router = FakeRouter()
    router.outcomes = [0.0004, "timeout", 0.0042, "unreachable"]
    text = type_lines(router, "ping ip 10.0.0.1 repeat 4 size 1500 df-bit\r")
    assert "Sending 4, 1500-byte ICMP Echos to 10.0.0.1, timeout is 2 seconds:\n" in text
    assert "\n!.!U\nSuccess rate is 50 percent (2/4), round-trip min/avg/max = 1/2/4 ms\n" in text
    options = router.pinged[0]
    assert (options.address, options.count, options.size, options.dont_fragment) == (
        IPv4Address("10.0.0.1"),
        4,
        1500,
        True,
    )


def test_ping_is_stopped_by_control_c_and_later_commands_run() -> None:
    router = FakeRouter()
    router.outcomes = []
    text = type_lines(router, "ping 10.0.0.1\r\x03show privilege\r")
    assert "Success rate is 0 percent (0/0)\nR1#show privilege\nCurrent privilege level is 15\n" in text


def test_client_that_hangs_up_stops_its_command() -> None:
    async def run() -> None:
        router = FakeRouter()
        router.outcomes = []
        shell = Shell(router, lambda text: None, privilege=15)
        task = asyncio.create_task(shell.run())
        shell.feed("ping 10.0.0.1\r")
        while not router.pinged:
            await asyncio.sleep(0)
        shell.hang_up()
        await asyncio.wait_for(task, 2)

    asyncio.run(run())


def test_two_logins_share_one_configuration() -> None:
    async def run() -> None:
        router = FakeRouter()
        shells = [Shell(router, lambda text: None, privilege=15) for _ in range(2)]
        tasks = [asyncio.create_task(shell.run()) for shell in shells]
        shells[0].feed("conf t\rint fa0/0\rdescription one\r")
        shells[1].feed("conf t\rint fa0/1\rdescription two\r")
        for shell in shells:
            shell.end_input()
        await asyncio.gather(*tasks)
        assert [interface.description for interface in router.device.interfaces.values()] == ["one", "two"]

    asyncio.run(run())


WORDS = """
show configure terminal interface fa0/1 FastEthernet 0/0 ip address 10.0.0.1 255.255.255.0 policy-map P class
class-default police cir 1000000 bc 1500 conform-action transmit exceed-action drop violate-action shape
average percent 20 service-policy output input no default do end exit class-map match-any match dscp ef ip
precedence access-list 101 permit tcp any host eq www running-config startup-config version policy-map
access-lists all hostname R1 banner motd @ line vty 0 4 | include section count ^ping$ ? clear counters ping
route 0.0.0.0 write erase memory reload enable disable length width 0 5 set queue-limit fair-queue username
privilege secret
""".split()  # noqa: SIM905 - a list of 100 quoted words is no easier to read


@given(
    st.lists(
        st.one_of(
            st.sampled_from(WORDS).map(lambda word: word + " "),
            st.sampled_from(["\r", "\r", "\r", "\x1a", "\x03", "\x15", "\x7f", "\x1b[A", "conf t\r", "end\r"]),
            st.text(max_size=5),
        ),
        max_size=40,
    )
)
@settings(max_examples=example_count(150), deadline=None)
def test_login_survives_any_input(pieces: list[str]) -> None:
    router = FakeRouter()
    text = type_lines(router, "terminal length 0\r" + "".join(pieces) + "\r")
    assert text.startswith("\nR1#terminal length 0\n")
    # The router's new state can be shown, and parsed again.
    router.device.hostname = "R1"
    assert type_lines(router, "terminal length 0\rshow running-config\r").endswith("\nend\n\nR1#")


@pytest.mark.parametrize(
    ("guide", "models"), [("reference/router", ("3725", "2811")), ("reference/switch", ("3750G",))]
)
def test_every_documented_command_exists(guide: str, models: tuple[str, ...]) -> None:
    docs = Path(__file__).parents[2] / "docs"
    routers = [FakeRouter(model) for model in models]
    capabilities = frozenset[str]().union(*(device_capabilities(router.device.hardware) for router in routers))

    def inert_block_lines(name: str) -> list[str]:
        blocks = re.findall(r"```(\w*)\n(.*?)```", (docs / f"{name}.md").read_text(), re.DOTALL)
        # Those with a language are configuration.
        return [line for language, block in blocks if not language for line in block.splitlines()]

    commands = inert_block_lines(guide)
    assert len(commands) > 20
    for command in commands:
        EXEC.parse("privileged", command, capabilities=capabilities)
    printed = [type_lines(router, "show ?\x15") for router in routers]
    shown = {match.split(" ")[0] for text in printed for match in text.split("\n  ")[1:]}
    # What a switch has in common with a router is listed with the router.
    commands += inert_block_lines("reference/router")
    assert shown <= {command.split(" ")[1] for command in commands if command.startswith("show ")}


def test_copy_of_the_configuration_shares_no_mutable_values() -> None:
    device = FakeRouter().device
    copied = device.copy()
    assert copied == device
    for field in fields(device):
        value = getattr(device, field.name)
        if isinstance(value, dict | list | IpSla):
            assert getattr(copied, field.name) is not value
        else:
            hash(value)
    for theirs, ours in ((copied.interfaces, device.interfaces), (copied.lines, device.lines)):
        for name, item in ours.items():
            assert theirs[name] is not item
            assert all(hash(getattr(item, field.name)) is not None for field in fields(item))
