"""Command line of one login, without I/O: `feed` takes input characters, a callback takes output text.

Commands read and change the router through `environment.Environment`. A caller creates a `Shell`, runs `run()` as a
task, feeds it the client's input, and hangs up when the client disconnects.
"""

from __future__ import annotations

from collections.abc import Callable

from qoslab.ios.cli import output_filters
from qoslab.ios.cli.grammar import CliError, Column, HelpItem, InvalidInputError, tokenise
from qoslab.ios.cli.terminal import (
    ClientDisconnected,
    CompletionRequested,
    EndOfConfiguration,
    HelpRequested,
    InterruptRequested,
    Terminal,
)
from qoslab.ios.config import ConfigSession, device_capabilities
from qoslab.ios.environment import CommandFailedError, DataPlaneDownError, RouterEnvironment
from qoslab.ios.exec import EXEC, ExecSession
from qoslab.ios.login import USER_LEVEL
from qoslab.ios.model.device import Device

DATA_PLANE_DOWN = "Data plane is not responding"
HELP_COLUMN = 2
LOGIN_LINE = "vty 0"
"""Line whose messages and timeouts apply to every login, each of which has a separate line."""
_DO = HelpItem("do", "To run exec commands in config mode")


class Shell:
    """Command-line interpreter of one login."""

    def __init__(
        self, environment: RouterEnvironment, write: Callable[[str], None], *, privilege: int = USER_LEVEL
    ) -> None:
        self.environment = environment
        self.terminal = Terminal(write, lambda: environment.device.lines[LOGIN_LINE].idle_s)
        self.session = ExecSession(environment, self.terminal, privilege=privilege)

    def feed(self, text: str) -> None:
        """Take input characters from the client."""
        self.terminal.feed(text)

    def end_input(self) -> None:
        """End the client's input: `run` ends after the execution of the input so far."""
        self.terminal.end_input()

    def hang_up(self) -> None:
        """Report that the client has disconnected: `run` ends at once."""
        self.terminal.hang_up()

    async def run(self) -> None:
        """Serve the login until it ends."""
        banner = self.session.device.banner_motd
        # The empty line keeps the first prompt at the start of a line, regardless of the client's output before it.
        self.terminal.write(("" if banner is None else f"\n{banner}") + "\n")
        pending = ""
        try:
            while not self.session.closed:
                pending = await self._execute_line(pending)
        except ClientDisconnected:
            return

    async def run_once(self, line: str) -> None:
        """Execute one command without prompts or paging (`ssh R1 show version`)."""
        self.terminal.length = 0
        try:
            await self._execute(line, prompt_width=0)
        except (ClientDisconnected, InterruptRequested):
            return

    async def _execute_line(self, pending: str) -> str:
        """Read and execute a line; return the initial text of the next prompt."""
        session, terminal = self.session, self.terminal
        prompt = session.prompt
        try:
            if session.config is not None and session.config.is_collecting_banner:
                line = await terminal.read_answer()
            else:
                line = await terminal.read_command(prompt, pending)
        except HelpRequested as request:
            self._help_text(request.line, len(prompt))
            return request.line
        except CompletionRequested as request:
            terminal.write("\n")
            return self._complete_line(request.line)
        except EndOfConfiguration as end:
            await self._execute(end.line, len(prompt))
            if session.config is not None:
                self._end_configuration()
            return ""
        except InterruptRequested:
            session.config = None
            return ""
        await self._execute(line, len(prompt))
        return ""

    async def _execute(self, line: str, prompt_width: int) -> None:
        """Execute one line; print the reason of a refusal."""
        try:
            if self.session.config is not None:
                await self._configure(self.session.config, line, prompt_width)
            elif line.strip() and not line.lstrip().startswith("!"):
                await self._exec(line, 0)
        except CliError as error:
            self.terminal.write("\n".join(error.render(prompt_width)) + "\n")
        except DataPlaneDownError:
            # A refused configuration line is an `Error`, which Ansible looks for.
            kind = "" if self.session.config is None else "Error: "
            self.terminal.write(f"% {kind}{DATA_PLANE_DOWN}\n")
        except CommandFailedError as error:
            self.terminal.write(f"% Error: {error.message}\n")
        except InterruptRequested:
            pass

    @property
    def _capabilities(self) -> frozenset[str]:
        """Return the capabilities of the device that select its exec commands."""
        return device_capabilities(self.session.device.hardware)

    async def _exec(self, line: str, start: Column) -> None:
        """Execute an exec command that begins at column `start`."""
        command, mark = output_filters.split(line)
        match = EXEC.parse(self.session.mode, command, start=start, capabilities=self._capabilities)
        output_filter = None
        if mark is not None:
            if match.args.keywords[0] not in ("show", "more"):
                raise InvalidInputError(mark - 1)
            output_filter = output_filters.parse(line, mark)
        text = await match.command.handler(self.session, match.args)
        if text is None:
            return
        await self.terminal.send_paged(text if output_filter is None else output_filter.apply(text))

    async def _configure(self, config: ConfigSession, line: str, prompt_width: int) -> None:
        """Execute a line of configuration mode; a change takes effect completely or not at all."""
        tokens = tokenise(line)
        if not config.is_collecting_banner and tokens and tokens[0].text.lower() == _DO.word:
            await self._exec(line, tokens[0].column + len(tokens[0].text))
            return
        before = config.position

        def change(device: Device) -> None:
            config.device = device
            config.execute(line)

        try:
            await self.environment.edit(change)
        except CommandFailedError:
            config.position = before
            config.finished = False
            raise
        finally:
            config.device = self.environment.device
            for inert in config.remarks:
                mnemonic = "UNDECIDED" if inert.undecided else "NOEFFECT"
                text = f'%QOSLAB-5-{mnemonic}: "{inert.text}" is accepted without effect: {inert.subject}'
                self.environment.log.add(self.environment.current_time(), text)
            config.remarks.clear()
            if config.notices:
                self.terminal.write("".join(notice + "\n" for notice in config.notices))
                config.notices.clear()
        if config.finished:
            self._end_configuration()

    def _end_configuration(self) -> None:
        self.session.config = None
        self.environment.log.add(self.environment.current_time(), "%SYS-5-CONFIG_I: Configured from console by vty0")

    # Help

    def _help_items(self, line: str) -> list[HelpItem]:
        command, mark = output_filters.split(line)
        config = self.session.config
        tokens = tokenise(command)
        doing = config is not None and len(tokens) > 0 and tokens[0].text.lower() == _DO.word and command != _DO.word
        if config is not None and not doing:
            return self._configuration_items(config, line)
        start = tokens[0].column + len(tokens[0].text) if doing else 0
        if mark is not None:
            return output_filters.filter_help_items(line, mark)
        items = EXEC.help(self.session.mode, line, start=start, capabilities=self._capabilities)
        if items[-1].word == "<cr>" and tokens and "show".startswith(tokens[1 if doing else 0].text.lower()):
            items = [*items[:-1], HelpItem("|", "Output modifiers"), items[-1]]
        return items

    @staticmethod
    def _configuration_items(config: ConfigSession, line: str) -> list[HelpItem]:
        """Return the help in configuration mode, which also has the command `do`."""
        first_word = line.lstrip()
        if not _DO.word.startswith(first_word.lower()):
            return config.help(line)
        try:
            return sorted([*config.help(line), _DO], key=lambda item: item.word)
        except InvalidInputError:
            return [_DO]

    def _help_text(self, line: str, prompt_width: int) -> None:
        try:
            items = self._help_items(line)
        except CliError as error:
            unknown = isinstance(error, InvalidInputError)
            text = ["% Unrecognized command"] if unknown else error.render(prompt_width)
            self.terminal.write("\n".join(text) + "\n")
            return
        listing = not line or line.endswith(" ") or any(not item.word[:1].islower() for item in items)
        if listing:
            width = max(len(item.word) for item in items)
            text = [f"{'':{HELP_COLUMN}}{item.word:<{width}}  {item.text}".rstrip() for item in items]
            self.terminal.write("\n".join(text) + "\n\n")
        else:
            self.terminal.write("  ".join(item.word for item in items) + "  \n\n")

    def _complete_line(self, line: str) -> str:
        """Return the line with its last word completed if possible."""
        tokens = tokenise(line)
        if not tokens or line.endswith(" "):
            return line
        try:
            items = self._help_items(line)
        except CliError:
            return line
        words = [item.word for item in items if item.word.startswith(tokens[-1].text.lower())]
        return line[: tokens[-1].column] + words[0] + " " if len(words) == 1 else line
