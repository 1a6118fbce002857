"""Configuration lines made by the table of commands itself: well-formed, whatever they say."""

from __future__ import annotations

from random import Random

from qoslab.ios.cli.syntax import Argument, Automaton
from qoslab.ios.config import CONFIG, ConfigSession

VALUES = {
    "A.B.C.D": ["10.0.0.1", "10.0.1.1", "10.0.0.0", "10.0.1.0", "0.0.0.0", "255.255.255.0", "0.0.0.255"],
    "Interface": ["Fa0/0", "Fa0/1", "s0/0", "Serial0/1", "fa 0/1", "fa0/9"],
    "WORD": ["Voice", "Data", "Child", "Edge", "Inner", "New", "class-default", "List", "101", "no", "input"],
    "hh:mm": ["00:01:30", "10:20", "23:59:59"],
    "LINE": ["some text", "@a b@", "no way", "end", "x  y"],
}
MASKS = ["255.255.255.0", "255.255.0.0", "255.255.255.255", "0.0.0.255"]
MOST_WORDS = 15


def typed_line(random: Random, session: ConfigSession) -> str:
    """A line of the session's mode or of global configuration; the end of a banner while one is being typed."""
    if session.collecting:
        return "@"
    mode = session.position.mode if random.random() < 0.6 else "config"
    possible = [
        each.automaton
        for each in CONFIG._modes[mode]
        if each.command.requires <= session.capabilities and each.command.syntax != "end"
    ]
    return _walk(random, random.choice(possible))


def _walk(random: Random, automaton: Automaton) -> str:
    words: list[str] = []
    state = automaton.start
    while len(words) < MOST_WORDS:
        edges = automaton.edges(state)
        if not edges or (automaton.accepts(state) and random.random() < 0.4):
            break
        edge = random.choice(edges)
        words.append(edge.symbol if isinstance(edge.symbol, str) else _value(random, edge.symbol))
        state = edge.target
    return " ".join(words)


def _value(random: Random, argument: Argument) -> str:
    placeholder = argument.type.placeholder
    if argument.name == "mask":
        return random.choice(MASKS)
    if placeholder in VALUES:
        return random.choice(VALUES[placeholder])
    low, high = (int(limit) for limit in placeholder.strip("<>").split("-"))
    if argument.name in ("list", "number") and high in (99, 199):
        return random.choice(["5", "7", "101", "102"])
    usual = 1_000_000 if low <= 1_000_000 <= high else low
    return str(random.choice([low, high, random.randint(low, high), min(high, low + random.randint(0, 10)), usual]))
