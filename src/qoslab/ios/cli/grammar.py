"""Declarative table of IOS commands, and the parser that matches typed lines against it.

A command is registered with its syntax in a small notation:

    ip address <address:address> <mask:mask> [secondary]
    match [ip] dscp <values:dscp>+
    shape (average|peak) <rate:8000-154400000>

Words are keywords; `<name:type>` is an argument (`type` is a name of `arguments.TYPES`, a range of integers, or
one of rates (`8000-154400000kmg`));
`[...]` is optional, `(a|b)` a choice, `+` one or more times. A keyword may be typed as any prefix that no other
keyword possible at that place shares. One table serves any number of modes; exec commands and configuration
commands use separate tables with the same classes.

A line that does not match raises one of the errors that IOS prints: `InvalidInputError`, `IncompleteError`,
`AmbiguousError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from qoslab.errors import IosError
from qoslab.ios.cli import syntax
from qoslab.ios.cli.arguments import ArgumentType
from qoslab.ios.cli.undo import PLAIN, Undo

Handler = TypeVar("Handler", bound=Callable[..., Any])
T = TypeVar("T")
Form = Literal["set", "no", "default"]
Column = int
"""Counted from 0 at the first character of the line as typed, without the prompt."""

MAX_TOKENS = 128
"""Maximum words of a command, to limit recursion; more do not fit into the 254 characters that IOS accepts."""

NOT_SUPPORTED = "Not supported: "
"""Beginning of the help for keywords of refused lines, before the reason."""
UNDECIDED = "Undecided: "
"""Beginning of the help for keywords of lines without effect on the packets of a lab."""


class CliError(IosError):
    """Error for a line that the command line refuses."""

    def render(self, prompt_width: int = 0) -> list[str]:
        """Return the lines that IOS prints; `prompt_width` is the length of the prompt before the typed line."""
        return self.message.split("\n")


class InvalidInputError(CliError):
    """Error for a token that no command accepts; `column` is that of its first character."""

    def __init__(self, column: Column) -> None:
        super().__init__("% Invalid input detected at '^' marker.")
        self.column = column

    def render(self, prompt_width: int = 0) -> list[str]:
        """Return the caret line, the message and an empty line."""
        return [" " * (prompt_width + self.column) + "^", self.message, ""]


class IncompleteError(CliError):
    """Error for a line that lacks an argument."""

    def __init__(self) -> None:
        super().__init__("% Incomplete command.")

    def render(self, prompt_width: int = 0) -> list[str]:
        """Return the message and an empty line."""
        return [self.message, ""]


class AmbiguousError(CliError):
    """Error for an ambiguous keyword prefix; `column` is that of the token."""

    def __init__(self, line: str, column: Column) -> None:
        super().__init__(f'% Ambiguous command:  "{line.strip()}"')
        self.column = column


class RejectedError(CliError):
    """Error for a well-formed line that the device refuses because of its content, with the device's message."""


class Token(NamedTuple):
    """A run of characters other than blanks."""

    text: str
    column: Column


_TOKEN = re.compile(r"[^ \t]+")


def tokenise(line: str, start: Column = 0) -> list[Token]:
    """Split `line` from column `start` into tokens; columns stay those of the whole line."""
    return [Token(match[0], match.start()) for match in _TOKEN.finditer(line, start)]


@dataclass(frozen=True, slots=True)
class HelpItem:
    """One line of the answer to `?`: a keyword, an argument's placeholder or `<cr>`, and its explanation."""

    word: str
    text: str


@dataclass(frozen=True, slots=True)
class CommandSyntax(Generic[Handler]):
    """A registered command."""

    modes: tuple[str, ...]
    syntax: str
    handler: Handler
    requires: frozenset[str]
    no: str | bool = False
    """The syntax of its `no` form, as given to `CommandTable.add`."""
    undo: Undo = PLAIN
    fallback: bool = False
    """True if the command matches a line only if no other command does."""


class Capture(NamedTuple):
    """An argument's value, or a keyword (then the value is the keyword itself)."""

    name: str
    value: object
    column: Column


class Args:
    """Arguments, by name, and keywords of a matched line."""

    def __init__(self, form: Form, captures: Iterable[Capture], keywords: Iterable[Capture], end: Column) -> None:
        self.form: Form = form
        self._captures = tuple(captures)
        self._keywords = tuple(keywords)
        self.end = end
        """The column after the last token."""

    @property
    def is_negated(self) -> bool:
        """True if the line began with `no`."""
        return self.form == "no"

    @property
    def unset(self) -> bool:
        """True if the line began with `no` or `default`."""
        return self.form != "set"

    def __contains__(self, keyword: str) -> bool:
        """Return whether the keyword was typed (abbreviated or not)."""
        return any(k.name == keyword for k in self._keywords)

    @property
    def keywords(self) -> tuple[str, ...]:
        """The keywords in full and in order, without `no` and `default`."""
        return tuple(k.name for k in self._keywords)

    def value(self, name: str, kind: type[T]) -> T:
        """Return the argument `name`, which the syntax makes mandatory."""
        found = self.optional(name, kind)
        if found is None:
            raise KeyError(f"the line has no argument {name}")
        return found

    def optional(self, name: str, kind: type[T]) -> T | None:
        """Return the argument `name`; None if it was not typed."""
        for capture in self._captures:
            if capture.name == name:
                if not isinstance(capture.value, kind):
                    raise TypeError(f"argument {name} is {capture.value!r}, not of type {kind.__name__}")
                return capture.value
        return None

    def values(self, name: str, kind: type[T]) -> list[T]:
        """Return all values of a repeated argument, in order."""
        found = [capture.value for capture in self._captures if capture.name == name]
        return [value for value in found if isinstance(value, kind)]

    def typed_order(self) -> list[Capture]:
        """Return keywords and arguments in the order typed."""
        return sorted([*self._captures, *self._keywords], key=lambda capture: capture.column)

    def words(self, line: str) -> tuple[syntax.Word, ...]:
        """Return keywords and arguments in order, each with its text in `line`, the matched line."""
        marked = [(each, True) for each in self._keywords] + [(each, False) for each in self._captures]
        marked.sort(key=lambda item: item[0].column)
        ends = [each.column for each, _ in marked[1:]] + [len(line)]
        return tuple(
            syntax.Word(each.name, line[each.column : end].rstrip(), keyword)
            for (each, keyword), end in zip(marked, ends, strict=True)
        )

    def are_keywords_complete(self, line: str, end: Column) -> bool:
        """Return whether the keywords before a column are unabbreviated in `line`, the matched line."""
        typed = {token.column: token.text.lower() for token in tokenise(line)}
        return all(typed.get(each.column) == each.name for each in self._keywords if each.column < end)

    def column(self, name: str) -> Column:
        """Return the column of the argument or keyword `name`, or the column of the line's end if it was not typed."""
        for capture in (*self._captures, *self._keywords):
            if capture.name == name:
                return capture.column
        return self.end

    def invalid_argument(self, name: str) -> InvalidInputError:
        """Return, for the caller to raise, the error with the caret under the argument or keyword `name`."""
        return InvalidInputError(self.column(name))

    def invalid_repeat(self, name: str, index: int) -> InvalidInputError:
        """Return the error with the caret under value `index` (from 0) of a repeated argument."""
        return InvalidInputError([capture.column for capture in self._captures if capture.name == name][index])


@dataclass(frozen=True, slots=True)
class CommandMatch(Generic[Handler]):
    """A line that matched."""

    command: CommandSyntax[Handler]
    mode: str
    """The mode in which the line matched: the current mode or one of its parents."""
    args: Args

    def key(self, line: str) -> str:
        """Return the key of the line's subject; the whole line if the command has no `no` form."""
        filled = self._fill_template(self.command.undo.key, line)
        if filled is not None:
            return filled
        no, plain = self.command.no, self.command.syntax
        negative = None if no is False else _mandatory_syntax(plain if no is True else no, shorten=no is True)
        filled = None if negative is None else negative.fill(self.args.words(line))
        return line.removeprefix("no ") if filled is None else filled

    def undo(self, line: str) -> str:
        """Return the line that undoes `line`; for a `no` line, the line that sets the default."""
        if self.args.form == "no":
            return f"default {line.removeprefix('no ')}"
        given = self.command.undo.line or ""
        text = self._fill_template(given.removeprefix("default ") or None, line) or self.key(line)
        return f"default {text}" if given.startswith("default ") else f"no {text}"

    def goes_with(self, line: str) -> str | None:
        """Return the key of the line whose removal also removes this line."""
        return self._fill_template(self.command.undo.goes_with, line)

    def _fill_template(self, template: str | None, line: str) -> str | None:
        return None if template is None else _syntax_automaton(template).fill(self.args.words(line))


@cache
def _syntax_automaton(text: str) -> syntax.Automaton:
    return syntax.Automaton(syntax.parse(text))


@cache
def _mandatory_syntax(text: str, *, shorten: bool) -> syntax.Automaton:
    return syntax.Automaton(syntax.without_optional_parts(_syntax_node(text, shorten=shorten)))


@cache
def _syntax_node(text: str, *, shorten: bool) -> syntax.Node:
    node = syntax.parse(text)
    return syntax.accept_truncated(node) if shorten else node


@dataclass(frozen=True)
class CompiledForm(Generic[Handler]):
    """One form (plain, `no`, `default`) of a command; its syntax is parsed when a line first may match it."""

    command: CommandSyntax[Handler]
    form: Form
    text: str
    """The syntax, without `no` and `default`."""
    shorten: bool
    """True if everything after the leading keywords is optional."""
    help: Mapping[str, str]

    @cached_property
    def automaton(self) -> syntax.Automaton:
        """Return the automaton of the syntax."""
        node = _syntax_node(self.text, shorten=self.shorten)
        return syntax.Automaton(node if self.form == "set" else syntax.with_keyword(self.form, node))

    @cached_property
    def leading_keywords(self) -> tuple[str, ...]:
        """The mandatory keywords among the first two words of every matching line."""
        if self.form == "set":
            return syntax.leading_keywords(self.text, 2)
        return (self.form, *syntax.leading_keywords(self.text, 1))


class _Thread(NamedTuple, Generic[Handler]):
    """A state of a command's automaton reached by the tokens so far, with the captured values."""

    compiled: CompiledForm[Handler]
    state: int
    captures: tuple[Capture, ...] = ()
    keywords: tuple[Capture, ...] = ()


class _CommandIndex(Generic[Handler]):
    """Index of the commands of a mode by the first letters of their first two words.

    Most lines match few of the hundreds of commands, and the others need not be compiled.
    """

    LETTERS = 2
    WORDS = 2

    def __init__(self, commands: Iterable[CompiledForm[Handler]], depth: int = 0) -> None:
        self._commands = list(commands)
        self._depth = depth
        self._following: dict[str, _CommandIndex[Handler]] = {}
        words = {self._leading_keyword(each) for each in self._commands} - {None}
        self._known = {word[: length + 1] for word in words if word for length in range(self.LETTERS)}

    def _leading_keyword(self, compiled: CompiledForm[Handler]) -> str | None:
        """Return the leading keyword of the command at this depth; None if there is no fixed keyword."""
        leading = compiled.leading_keywords
        return leading[self._depth].lower() if self._depth < len(leading) else None

    @cached_property
    def _threads(self) -> list[_Thread[Handler]]:
        return [_Thread(compiled, compiled.automaton.start) for compiled in self._commands]

    def candidate_commands(self, tokens: Sequence[Token]) -> list[_Thread[Handler]]:
        """Return the candidate commands for these tokens in the order of registration; other commands cannot match.

        If a word matches no command, one command is kept for each interpretation of the words before it, so that the
        error is at that word.
        """
        found = self
        for token in tokens[: self.WORDS]:
            found = found._matching_branches(token.text[: self.LETTERS].lower())
        return found._threads

    def _matching_branches(self, letters: str) -> _CommandIndex[Handler]:
        if letters not in self._known:
            letters = ""
        if letters not in self._following:
            fitting = {
                index
                for index, each in enumerate(self._commands)
                if (word := self._leading_keyword(each)) is None or (letters and word.startswith(letters))
            }
            if self._depth > 0:
                read = {self._commands[index].leading_keywords[: self._depth] for index in fitting}
                for index, each in enumerate(self._commands):
                    if each.leading_keywords[: self._depth] not in read:
                        read.add(each.leading_keywords[: self._depth])
                        fitting.add(index)
            self._following[letters] = _CommandIndex((self._commands[i] for i in sorted(fitting)), self._depth + 1)
        return self._following[letters]


_EMPTY_HELP = {"no": "Negate a command or set its defaults", "default": "Set a command to its defaults"}


@dataclass
class CommandTable(Generic[Handler]):
    """Commands by mode.

    `texts` has the help of keywords that many commands share; a command's own `help` takes precedence. `parents` gives
    the mode to try next if a line does not match in a mode.
    """

    CACHE_SIZE: ClassVar[int] = 2048
    """Number of cached matches."""

    texts: Mapping[str, str] = field(default_factory=dict)
    parents: Mapping[str, str | None] = field(default_factory=dict)
    _modes: dict[str, list[CompiledForm[Handler]]] = field(default_factory=dict)
    _beginnings: dict[tuple[str, frozenset[str]], _CommandIndex[Handler]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A configuration is parsed many times: to print, compare and remove it.
        self._matched = lru_cache(self.CACHE_SIZE)(self._match)

    def add(
        self,
        mode: str | tuple[str, ...],
        text: str,
        *,
        no: str | bool = False,
        help: Mapping[str, str] | None = None,
        requires: Collection[str] = (),
        undo: Undo | None = None,
        fallback: bool = False,
    ) -> Callable[[Handler], Handler]:
        """Register the decorated function as the handler of a command.

        `no` is the syntax of its `no` and `default` forms (without those words); True means the command's own syntax
        with everything after the leading keywords optional. `help` has the help of keywords and arguments by name. The
        command exists only if all of `requires` are among the capabilities given to `parse`. Raise ValueError for a
        keyword or argument without help. `undo` describes the removal of its lines if `no` is not enough. A `fallback`
        does not match a line that also matches a command that is no fallback.
        """
        forms: list[tuple[Form, str, bool]] = [("set", text, False)]
        if no is not False:
            forms += _negative_forms(text if no is True else no, shorten=no is True)
        return self._register(mode, text, forms, help, requires, no, undo, fallback)

    def add_no(
        self,
        mode: str | tuple[str, ...],
        text: str,
        *,
        requires: Collection[str] = (),
        help: Mapping[str, str] | None = None,
        fallback: bool = False,
    ) -> Callable[[Handler], Handler]:
        """Register a command that has only the forms `no` and `default`."""
        return self._register(mode, text, _negative_forms(text), help, requires, text, None, fallback)

    def _register(
        self,
        mode: str | tuple[str, ...],
        text: str,
        forms: Sequence[tuple[Form, str, bool]],
        help: Mapping[str, str] | None,
        requires: Collection[str],
        no: str | bool,
        undo: Undo | None,
        fallback: bool = False,
    ) -> Callable[[Handler], Handler]:
        modes = (mode,) if isinstance(mode, str) else mode
        texts = {**self.texts, **_EMPTY_HELP, **(help or {})}

        def register(handler: Handler) -> Handler:
            command = CommandSyntax(modes, text, handler, frozenset(requires), no, undo or PLAIN, fallback)
            for name in (name for own in {own for _, own, _ in forms} for name in syntax.syntax_names(own)):
                if name not in texts:
                    raise ValueError(f"command {text!r}: no help text for {name!r}")
            for form, own, shorten in forms:
                compiled = CompiledForm(command, form, own, shorten, texts)
                for each in modes:
                    self._modes.setdefault(each, []).append(compiled)
            self._beginnings.clear()
            self._matched.cache_clear()
            return handler

        return register

    def forms(self, mode: str) -> list[CompiledForm[Handler]]:
        """Return each form of each command of a mode, in the order of registration."""
        return list(self._modes.get(mode, ()))

    def first_words(self, mode: str) -> frozenset[str]:
        """Return the first keywords of the commands of a mode."""
        forms = self._modes.get(mode, ())
        open_ones = (each.automaton for each in forms if not each.leading_keywords)
        symbols = (edge.symbol for each in open_ones for edge in each.edges(each.start))
        words = {symbol for symbol in symbols if isinstance(symbol, str)}
        return frozenset(words | {each.leading_keywords[0] for each in forms if each.leading_keywords})

    def parse(
        self, mode: str, line: str, *, start: Column = 0, capabilities: Collection[str] = (), any_number: bool = False
    ) -> CommandMatch[Handler]:
        """Match `line` from column `start` in `mode`, then in the parent modes. Raise CliError if it does not match.

        With `any_number` a number may lie outside its range.

        Of several failures, raise the one furthest to the right; of equal ones, that of the innermost mode. A line that
        is incomplete in one mode may be complete in a parent mode (`mls qos` below an interface), but the parent mode
        must not read a keyword of the inner mode as an abbreviation of another one. A command with an abbreviated
        keyword yields to a command of a parent mode whose keywords are all typed in full (`flow record` and `ip route`
        below an interface, which has `flowcontrol` and `ip route-cache`), unless that command is a fallback.
        """
        return self._matched(mode, line, start, frozenset(capabilities), any_number)

    def _match(
        self, mode: str, line: str, start: Column, capabilities: frozenset[str], any_number: bool
    ) -> CommandMatch[Handler]:
        worst: InvalidInputError | None = None
        undecided: IncompleteError | AmbiguousError | None = None
        found: CommandMatch[Handler] | None = None
        current: str | None = mode
        known = 0
        while current is not None:
            try:
                match = self._parse_in_mode(current, line, start, capabilities, any_number)
            except InvalidInputError as error:
                if worst is None or error.column > worst.column:
                    worst = error
                known = max(known, error.column)
            except AmbiguousError as error:
                undecided = undecided or error
                known = max(known, error.column + 1)
            except IncompleteError as error:
                undecided = undecided or error
                known = len(line)
            else:
                if match.args.are_keywords_complete(line, len(line)) and not (found and match.command.fallback):
                    return match
                if found is None:
                    if not match.args.are_keywords_complete(line, known):
                        break
                    found = match
            current = self.parents.get(current)
        if found is not None:
            return found
        if undecided is not None:
            raise undecided
        assert worst is not None
        raise worst

    def help(self, mode: str, line: str, *, start: Column = 0, capabilities: Collection[str] = ()) -> list[HelpItem]:
        """Return the possible words at the end of `line`: the answer to `?` typed there.

        If the line ends with a blank (or is empty), these are the next words, with `<cr>` if the line is complete;
        otherwise the completions of the last token. Raise CliError if the tokens before it do not match.
        """
        tokens = tokenise(line, start)
        partial = tokens.pop() if tokens and not line.endswith((" ", "\t")) else None
        threads = self._first_reading(mode, line, tokens, capabilities)
        items: dict[str, HelpItem] = {}
        for thread in threads:
            texts = thread.compiled.help
            for edge in thread.compiled.automaton.edges(thread.state):
                if isinstance(edge.symbol, str):
                    if partial is None or edge.symbol.lower().startswith(partial.text.lower()):
                        items.setdefault(edge.symbol, HelpItem(edge.symbol, texts[edge.symbol]))
                elif partial is None or edge.symbol.type.match(partial.text) is not None:
                    word = edge.symbol.type.placeholder
                    items.setdefault(word, HelpItem(word, texts[edge.symbol.name]))
        found = sorted(items.values(), key=lambda item: (item.word[0] in "<ABCDEFGHIJKLMNOPQRSTUVWXYZ", item.word))
        if partial is None and any(thread.compiled.automaton.accepts(thread.state) for thread in threads):
            found.append(HelpItem("<cr>", ""))
        if not found:
            column = len(line) if partial is None else partial.column
            raise InvalidInputError(column)
        return found

    def complete(self, mode: str, line: str, *, start: Column = 0, capabilities: Collection[str] = ()) -> str | None:
        """Return the unique completion of the last token of `line` (the Tab key); None without one."""
        tokens = tokenise(line, start)
        if not tokens or line.endswith((" ", "\t")):
            return None
        try:
            items = self.help(mode, line, start=start, capabilities=capabilities)
        except CliError:
            return None
        words = [item.word for item in items if item.word.lower().startswith(tokens[-1].text.lower())]
        return words[0] if len(words) == 1 else None

    # Search for all ways to consume the tokens; keywords are preferred to arguments, as in IOS.

    def _start(self, mode: str, capabilities: frozenset[str], tokens: Sequence[Token]) -> list[_Thread[Handler]]:
        found = self._beginnings.get((mode, capabilities))
        if found is None:
            commands = (each for each in self._modes.get(mode, ()) if each.command.requires <= capabilities)
            found = self._beginnings[mode, capabilities] = _CommandIndex(commands)
        return found.candidate_commands(tokens)

    def _parse_in_mode(
        self, mode: str, line: str, start: Column, capabilities: frozenset[str], any_number: bool
    ) -> CommandMatch[Handler]:
        tokens = tokenise(line, start)
        failure: CliError | None = None
        for outcome in self._follow_threads(self._start(mode, capabilities, tokens), line, tokens, 0, any_number):
            if isinstance(outcome, CliError):
                failure = _further_failure(failure, outcome)
                continue
            whole = [thread for thread in outcome if thread.compiled.automaton.accepts(thread.state)]
            if whole:
                # Commands of this kind of device precede common ones: `interface Vlan10` of a switch.
                ranks = [(one.fallback, not one.requires) for one in (each.compiled.command for each in whole)]
                thread = whole[ranks.index(min(ranks))]
                end = tokens[-1].column + len(tokens[-1].text) if tokens else start
                args = Args(thread.compiled.form, thread.captures, thread.keywords, end)
                return CommandMatch(thread.compiled.command, mode, args)
            failure = _further_failure(failure, IncompleteError())
        assert failure is not None
        raise failure

    def _first_reading(
        self, mode: str, line: str, tokens: Sequence[Token], capabilities: Collection[str]
    ) -> list[_Thread[Handler]]:
        failure: CliError | None = None
        for outcome in self._follow_threads(self._start(mode, frozenset(capabilities), tokens), line, tokens, 0):
            if not isinstance(outcome, CliError):
                return outcome
            failure = _further_failure(failure, outcome)
        assert failure is not None
        raise failure

    def _follow_threads(
        self, threads: list[_Thread[Handler]], line: str, tokens: Sequence[Token], index: int, any_number: bool = False
    ) -> Iterator[list[_Thread[Handler]] | CliError]:
        if index == len(tokens):
            yield threads
            return
        token = tokens[index]
        if index == MAX_TOKENS:
            yield InvalidInputError(token.column)
            return
        matched = False
        by_word = _keyword_steps(threads, token)
        if len(by_word) == 1:
            matched = True
            yield from self._follow_threads(next(iter(by_word.values())), line, tokens, index + 1, any_number)
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        by_count: dict[int, list[_Thread[Handler]]] = {}
        unfinished = False
        for thread in threads:
            for argument, target in thread.compiled.automaton.argument_edges(thread.state):
                kind = argument.type
                count, value = _match_argument(kind, line, token, following, len(tokens) - index)
                if value is None and any_number and kind.number:
                    value = int(token.text) if token.text.isdecimal() else None
                if value is None:
                    unfinished = unfinished or kind.begins(token.text)
                    continue
                captures = (*thread.captures, Capture(argument.name, value, token.column))
                step = _Thread(thread.compiled, target, captures, thread.keywords)
                by_count.setdefault(count, []).append(step)
        for count, group in by_count.items():
            matched = True
            yield from self._follow_threads(group, line, tokens, index + count, any_number)
        if len(by_word) > 1:
            yield AmbiguousError(line, token.column)
        elif unfinished:
            yield IncompleteError() if following is None else InvalidInputError(following.column)
        elif not matched:
            yield InvalidInputError(token.column)


def _negative_forms(text: str, *, shorten: bool = False) -> list[tuple[Form, str, bool]]:
    return [("no", text, shorten), ("default", text, shorten)]


def _keyword_steps(threads: Iterable[_Thread[Handler]], token: Token) -> dict[str, list[_Thread[Handler]]]:
    """Return the threads after each keyword that `token` may stand for.

    An exact keyword excludes longer ones, and a supported keyword those that are explained as not supported.
    """
    typed = token.text.lower()
    by_word: dict[str, list[_Thread[Handler]]] = {}
    for thread in threads:
        for small, word, target in thread.compiled.automaton.keyword_edges(thread.state):
            if not small.startswith(typed):
                continue
            if word.isdigit() and word != typed:
                # `speed 10` is no abbreviation of `speed 100`.
                continue
            keywords = thread.keywords
            if not (word in _EMPTY_HELP and not keywords and not thread.captures and thread.compiled.form == word):
                keywords = (*keywords, Capture(word, word, token.column))
            step = _Thread(thread.compiled, target, thread.captures, keywords)
            by_word.setdefault(word, []).append(step)
    exact = next((word for word in by_word if word.lower() == typed), None)
    if exact is not None:
        return {exact: by_word[exact]}
    if len(by_word) > 1:
        supported = {
            word: steps
            for word, steps in by_word.items()
            if not all(step.compiled.help[word].startswith((NOT_SUPPORTED, UNDECIDED)) for step in steps)
        }
        return supported or by_word
    return by_word


def _match_argument(
    kind: ArgumentType, line: str, token: Token, following: Token | None, remaining: int
) -> tuple[int, object | None]:
    """Return the number of tokens of the argument, and its value or None."""
    if kind.rest_of_line:
        return remaining, kind.match(line[token.column :].rstrip())
    value = kind.match(token.text)
    if value is None and following is not None and kind.begins(token.text):
        return 2, kind.match(token.text + following.text)
    return 1, value


def _further_failure(first: CliError | None, second: CliError) -> CliError:
    """Return the failure further to the right; the first one if equal."""

    def reach(error: CliError) -> float:
        return error.column if isinstance(error, InvalidInputError | AmbiguousError) else float("inf")

    return second if first is None or reach(second) > reach(first) else first
