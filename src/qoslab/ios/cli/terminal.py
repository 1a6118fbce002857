"""Terminal line without I/O: `feed` takes input characters, a callback takes output text.

Echo, line editing, history, type-ahead and ` --More-- ` paging, as on an IOS vty.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

CTRL_A, CTRL_B, CTRL_C, CTRL_D, CTRL_E, CTRL_F = "\x01", "\x02", "\x03", "\x04", "\x05", "\x06"
CTRL_K, CTRL_L, CTRL_N, CTRL_P, CTRL_R, CTRL_U, CTRL_W, CTRL_Z = (
    "\x0b",
    "\x0c",
    "\x0e",
    "\x10",
    "\x12",
    "\x15",
    "\x17",
    "\x1a",
)
BELL, BACKSPACE, DELETE, ESCAPE = "\x07", "\x08", "\x7f", "\x1b"
CTRL_CARET = "\x1e"
"""Ctrl-Shift-6, the escape sequence of IOS that stops a running command."""

_INTERRUPTS = frozenset({CTRL_C, CTRL_CARET})

DEFAULT_LENGTH = 24
DEFAULT_WIDTH = 80
HISTORY_SIZE = 20
"""Number of lines in the history: the default of `terminal history size`, 10 in 12.4 and 20 in 15.x."""
LINE_LIMIT = 4096
"""Maximum length of a command in characters. IOS truncates commands at 254, silently."""
MAX_UNREAD_CHARACTERS = 2**16
"""Limit of unread characters above which the caller of `feed` should wait, see `taken`."""

_MORE = " --More-- "
_ARROWS = {
    "[A": CTRL_P,
    "[B": CTRL_N,
    "[C": CTRL_F,
    "[D": CTRL_B,
    "OA": CTRL_P,
    "OB": CTRL_N,
    "OC": CTRL_F,
    "OD": CTRL_B,
}


class ClientDisconnected(Exception):  # noqa: N818 - it is an event, not an error
    """The client closed the connection."""


class InterruptRequested(Exception):  # noqa: N818
    """Ctrl-C, or Ctrl-Z with the same meaning."""


class LineEvent(Exception):  # noqa: N818
    """A key with a meaning of its own; `line` is the text before it."""

    def __init__(self, line: str) -> None:
        super().__init__(line)
        self.line = line


class EndOfConfiguration(LineEvent):
    """Ctrl-Z at a prompt; `line` is the text before it."""


class HelpRequested(LineEvent):
    """A question mark typed at a command prompt; `line` is the text before it."""


class CompletionRequested(LineEvent):
    """Tab typed at a command prompt."""


class Terminal:
    """The terminal line of a login."""

    def __init__(self, write: Callable[[str], None], idle_s: Callable[[], float | None] = lambda: None) -> None:
        """`idle_s` returns the idle timeout in seconds after which the line is closed; None for no timeout."""
        self.length = DEFAULT_LENGTH
        """Lines of a page; 0: no paging."""
        self.width = DEFAULT_WIDTH
        """Columns; 0: unlimited. Stored for `show` commands only; long lines are not wrapped."""
        self._send = write
        self._input: deque[str] = deque()
        self._arrived = asyncio.Event()
        self._ended = False
        self._gone = False
        self._after_cr = False
        self._history: deque[str] = deque(maxlen=HISTORY_SIZE)
        self._interrupt = asyncio.Event()
        self._idle_s = idle_s
        self._taken = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    # Input

    def feed(self, text: str) -> None:
        """Take characters as they arrive; they are buffered until they are read."""
        for character in text:
            if character == "\n" and self._after_cr:
                self._after_cr = False
                continue
            self._after_cr = character == "\r"
            if character == "\0":
                continue
            if character in _INTERRUPTS:
                self._interrupt.set()
            self._input.append("\r" if character == "\n" else character)
        self._taken.clear()
        self._arrived.set()

    @property
    def is_input_full(self) -> bool:
        """True if more than `MAX_UNREAD_CHARACTERS` characters are unread."""
        return len(self._input) > MAX_UNREAD_CHARACTERS

    async def wait_until_read(self) -> None:
        """Wait until all input has been read, or the line closes."""
        await self._taken.wait()

    def end_input(self) -> None:
        """End the input; input received so far is still executed."""
        self._ended = True
        self._arrived.set()

    def hang_up(self) -> None:
        """Report a closed connection: no more input is read, and a running command stops."""
        self._ended = self._gone = True
        self._input.clear()
        self._taken.set()
        self._room.set()
        self._arrived.set()
        self._interrupt.set()

    async def _read_key(self) -> str:
        await self._wait_with_timeout(self._room)
        while not self._input:
            self._taken.set()
            if self._ended:
                raise ClientDisconnected
            self._arrived.clear()
            await self._wait_with_timeout(self._arrived)
        key = self._input.popleft()
        if key in _INTERRUPTS and not self._gone and not _INTERRUPTS.intersection(self._input):
            self._interrupt.clear()
        return key

    async def _wait_with_timeout(self, event: asyncio.Event) -> None:
        """Wait for an awaitable; close the line after its idle timeout."""
        if event.is_set():
            return
        try:
            async with asyncio.timeout(self._idle_s()):
                await event.wait()
        except TimeoutError:
            self.hang_up()
            raise ClientDisconnected from None

    async def wait_for_interrupt(self) -> None:
        """Wait until Ctrl-C or Ctrl-Shift-6 is typed, or the line closes; a command awaits this during its work."""
        await self._interrupt.wait()

    def take_interrupt(self) -> None:
        """Drop the interrupt that stopped a command, and the input before it."""
        while self._input and self._input.popleft() not in _INTERRUPTS:
            pass
        if not self._gone and not _INTERRUPTS.intersection(self._input):
            self._interrupt.clear()

    # Output

    def pause_reading(self) -> None:
        """Pause reading, and thereby execution, because the client does not accept output."""
        self._room.clear()

    @property
    def is_paused(self) -> bool:
        """True while the client does not accept output."""
        return not self._room.is_set()

    def resume_output(self) -> None:
        """Resume the output."""
        self._room.set()

    def write(self, text: str) -> None:
        """Send text at once; newlines become CR LF."""
        self._send(text.replace("\r\n", "\n").replace("\n", "\r\n"))

    async def send_paged(self, text: str) -> None:
        """Send text page by page. If the user stops it, the rest is dropped."""
        if self.length == 0:
            self.write(text)
            return
        room = self.length - 1
        for line in text.splitlines():
            if room == 0:
                room = await self._prompt_for_page()
                if room == 0:
                    return
            self.write(line + "\n")
            room -= 1

    async def _prompt_for_page(self) -> int:
        """Prompt for the next page; return the number of lines to show, 0 to stop."""
        self.write(_MORE)
        key = await self._read_key()
        self.write(BACKSPACE * len(_MORE) + " " * len(_MORE) + BACKSPACE * len(_MORE))
        if key == " ":
            return self.length - 1
        return 1 if key == "\r" else 0

    # Lines

    @property
    def history(self) -> list[str]:
        """The commands typed, oldest first."""
        return list(self._history)

    async def read_answer(self, *, echo: bool = True) -> str:
        """Read the answer to a question, up to the end of the line."""
        answer = ""
        while True:
            key = await self._read_key()
            if key == "\r":
                self.write("\n")
                return answer
            if key in (CTRL_C, CTRL_Z, CTRL_CARET):
                self.write("\n")
                raise InterruptRequested
            if key in (BACKSPACE, DELETE):
                if answer and echo:
                    self.write("\b \b")
                answer = answer[:-1]
            elif key == CTRL_U:
                if echo:
                    self.write("\b \b" * len(answer))
                answer = ""
            elif key.isprintable():
                answer += key
                if echo:
                    self.write(key)

    async def read_confirmation(self) -> bool:
        """Read one key at a `[confirm]` question: Enter or `y` means yes."""
        key = await self._read_key()
        self.write(key if key.isprintable() else "")
        self.write("\n")
        return key in ("\r", "y", "Y")

    async def read_command(self, prompt: str, line: str = "") -> str:
        """Print the prompt and read a command with editing and history; `line` is the initial text.

        Raise HelpRequested at `?`, CompletionRequested at Tab, EndOfConfiguration at Ctrl-Z, Interrupted at Ctrl-C.
        """
        self.write(prompt)
        editor = _LineEditor(self, prompt, line, self._history)
        while True:
            key = await self._read_key()
            if key == ESCAPE:
                key = await self._escape()
            if key == "\r":
                self.write("\n")
                if editor.text.strip():
                    self._history.append(editor.text)
                return editor.text
            if key == "?":
                self.write("?\n")
                raise HelpRequested(editor.text[: editor.cursor])
            if key == "\t":
                raise CompletionRequested(editor.text)
            if key == CTRL_Z:
                self.write("^Z\n")
                raise EndOfConfiguration(editor.text)
            if key == CTRL_C:
                self.write("^C\n")
                raise InterruptRequested
            if key == CTRL_D and not editor.text:
                raise ClientDisconnected
            editor.handle_key(key)

    async def _escape(self) -> str:
        """Read the rest of an escape sequence; arrows become their control characters."""
        first = await self._read_key()
        if first not in ("[", "O"):
            return {"b": CTRL_B, "f": CTRL_F}.get(first.lower(), "")
        final = await self._read_key()
        while not final.isalpha() and final != "~":
            final = await self._read_key()
        return _ARROWS.get(first + final, "")


class _LineEditor:
    """The text of a line being typed, with a cursor."""

    def __init__(self, terminal: Terminal, prompt: str, text: str, history: deque[str]) -> None:
        self._terminal = terminal
        self._prompt = prompt
        self._history = [*history, text]
        self._position = len(self._history) - 1
        self.text = text
        self.cursor = len(text)
        terminal.write(text)

    def handle_key(self, key: str) -> None:
        """Handle one key."""
        match key:
            case "":
                pass
            case "\x08" | "\x7f":
                self._delete_to(self.cursor - 1)
            case "\x17":
                before = self.text[: self.cursor].rstrip()
                self._delete_to(before.rfind(" ") + 1)
            case "\x15" | "\x18":
                self._delete_to(0)
            case "\x0b":
                self._replace(self.text[: self.cursor], self.cursor)
            case "\x04":
                self._replace(self.text[: self.cursor] + self.text[self.cursor + 1 :], self.cursor)
            case "\x01":
                self._move(0)
            case "\x05":
                self._move(len(self.text))
            case "\x02":
                self._move(max(0, self.cursor - 1))
            case "\x06":
                self._move(min(len(self.text), self.cursor + 1))
            case "\x10":
                self._recall_history(self._position - 1)
            case "\x0e":
                self._recall_history(self._position + 1)
            case "\x12" | "\x0c":
                self._terminal.write("\n" + self._prompt + self.text)
                self.cursor = len(self.text)
            case _ if key.isprintable():
                self._insert(key)

    def _insert(self, key: str) -> None:
        if len(self.text) >= LINE_LIMIT:
            self._terminal.write(BELL)
            return
        if self.cursor == len(self.text):
            self.text += key
            self.cursor += 1
            self._terminal.write(key)
            return
        self._replace(self.text[: self.cursor] + key + self.text[self.cursor :], self.cursor + 1)

    def _delete_to(self, start: int) -> None:
        if start < 0 or start == self.cursor:
            return
        self._replace(self.text[:start] + self.text[self.cursor :], start)

    def _recall_history(self, position: int) -> None:
        if not 0 <= position < len(self._history):
            self._terminal.write(BELL)
            return
        self._history[self._position] = self.text
        self._position = position
        self._replace(self._history[position], len(self._history[position]))

    def _move(self, cursor: int) -> None:
        if cursor < self.cursor:
            self._terminal.write(BACKSPACE * (self.cursor - cursor))
        else:
            self._terminal.write(self.text[self.cursor : cursor])
        self.cursor = cursor

    def _replace(self, text: str, cursor: int) -> None:
        """Replace the displayed text by `text`."""
        common = 0
        while common < min(len(text), len(self.text), self.cursor) and text[common] == self.text[common]:
            common += 1
        surplus = max(0, len(self.text) - len(text))
        shown = BACKSPACE * (self.cursor - common) + text[common:] + " " * surplus
        self._terminal.write(shown + BACKSPACE * (len(text) + surplus - cursor))
        self.text, self.cursor = text, cursor
