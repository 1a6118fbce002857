"""The configuration lines that bring a device back from one running configuration to another."""

from __future__ import annotations

from qoslab.ios.device import Hardware


def undo_lines(before: str, after: str, hardware: Hardware) -> list[str]:
    b, a = _blocks(before), _blocks(after)
    lines: list[str] = []
    for head, body in a.items():
        if head.startswith("interface ") and head in b and body != b[head]:
            lines.append(head)
            lines += [_negated(each) for each in body if each not in b[head]]
            lines += [f" {each}" for each in b[head] if each not in body]
    for kind in ("policy-map", "class-map", "ip access-list", ""):
        lines += [
            f"no {head}"
            for head in a
            if head not in b
            and head.startswith(kind)
            and not head.startswith("interface ")
            and f"no {head}" not in lines
        ]
    return lines


def _negated(line: str) -> str:
    return f" {line[3:]}" if line.startswith("no ") else f" no {line}"


def _blocks(text: str) -> dict[str, list[str]]:
    blocks: dict[str, list[str]] = {}
    head = ""
    for line in text.splitlines():
        if not line.strip() or line.startswith(("!", "Building", "Current configuration", "end", "version")):
            continue
        if line.startswith(" "):
            blocks[head].append(line.strip())
        else:
            head = line.strip()
            blocks.setdefault(head, [])
    return blocks
