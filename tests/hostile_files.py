"""Experiments of somebody who means harm: each must give findings, quickly and in little memory.

A case is the files of a folder with `e.yml`; `BASE` is one that holds, which most cases change in one place.
"""

from __future__ import annotations

from collections.abc import Iterator

BASE = """\
name: e
title: One
topology:
  nodes:
    client: {platform: host}
    R1: {platform: ios, model: "3725"}
    server: {platform: host}
  links:
    - name: lan
      rate: 100 Mb/s
      ends:
        - {node: client, interface: eth0, address: 192.168.10.2/24}
        - {node: R1, interface: FastEthernet0/0, address: 192.168.10.1/24}
    - name: wan
      rate: 10 Mb/s
      ends:
        - {node: R1, interface: FastEthernet0/1, address: 192.168.20.1/24}
        - {node: server, interface: eth0, address: 192.168.20.2/24}
duration: 20 s
traffic:
  - {name: transfer, tool: iperf3, from: client, to: server}
arms:
  - name: one
"""
TEMPLATED = BASE.replace("- name: one", "- {name: one, configure: {R1: {template: t.j2}}}")

ESCAPES = {
    "globals of a helper": "{{ cycler.__init__.__globals__.os.popen('touch PWNED').read() }}",
    "globals of lipsum": "{{ lipsum.__globals__['os'].system('touch PWNED') }}",
    "subclasses": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "item for attribute": "{{ ()['__class__']['__base__'] }}",
    "filter attr": "{{ ''|attr('__class__') }}",
    "format": "{{ '{0.__class__.__init__.__globals__}'.format(1) }}",
    "format_map": "{{ '{a.__class__}'.format_map({'a': 1}) }}",
    "loop": "{% for i in [1] %}{{ loop.__init__.__globals__ }}{% endfor %}",
    "macro": "{% macro m() %}{% endmacro %}{{ m._func.__globals__ }}",
    "caller": "{% macro m() %}{{ caller._func.__globals__ }}{% endmacro %}{% call m() %}{% endcall %}",
    "self": "{{ self.__init__.__globals__ }}",
    "context of self": "{{ self._TemplateReference__context.environment }}",
    "map with an attribute": "{{ ['x']|map(attribute='__class__')|list }}",
    "join with an attribute": "{{ ['x']|join(attribute='__class__') }}",
    "range": "{{ range.__globals__ }}",
    "import": "{{ __import__('os').system('touch PWNED') }}",
    "file": "{% include '/etc/passwd' %}",
    "file above": "{% include '../../../../../../etc/passwd' %}",
    "file imported": "{% import '/etc/passwd' as p %}{{ p }}",
    "computed file": "{% include '/etc/' ~ 'passwd' %}",
    "method": "{{ 'x'.upper() }}",
    "counting turned back": "{{ environment.tick(-1000000) }}",
}
"""Templates that try to reach Python, or files."""

TOO_MUCH = {
    "division": "{{ 1/0 }}",
    "kinds": "{{ 'a' + 1 }}",
    "itself": "{% include 't.j2' %}",
    "itself twice": "{% set d = d|default(0) + 1 %}{% if d < 60 %}" + "{% include 't.j2' %}" * 2 + "{% endif %}",
    "long text": "{{ 'a' * 10**10 }}",
    "power": "{{ 9**9**9**9 }}",
    "power of a float": "{{ 2.0 ** 2000 }}",
    "range": "{% for i in range(10**12) %}{% endfor %}",
    "range without turns": "{% for i in range(10**12) if false %}{% endfor %}",
    "loops in loops": "{% for i in range(9999) %}" * 5 + "{% endfor %}" * 5,
    "filtered loops": "{% for i in range(9999) %}{% for j in range(9999) if false %}{% endfor %}{% endfor %}",
    "list": "{{ range(10**12)|list }}",
    "sum": "{{ range(10**12)|sum }}",
    "member": "{{ 'x' in range(10**12) }}",
    "doubled text": "{% set x = 'aaaaaaaaaaaa' %}" + "{% set x = x ~ x %}" * 60 + "{{ x }}",
    "added text": "{% set x = 'aaaaaaaaaaaa' %}" + "{% set x = x + x %}" * 60 + "{{ x }}",
    "doubled block": "{% set x %}aaaa{% endset %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60 + "{{ x }}",
    "doubled list": "{% set x = [1] %}" + "{% set x = [x, x] %}" * 60 + "{{ x == x }}",
    "doubled mapping": "{% set x = {'a': 1} %}" + "{% set x = {'a': x, 'b': x} %}" * 60 + "{{ x }}",
    "arguments": "{% macro m() %}{{ m(varargs, varargs) }}{% endmacro %}{{ m(1) }}",
    "macro": "{% macro m(d) %}{{ m(d + 1) }}{% endmacro %}{{ m(0) }}",
    "macro twice": "{% macro m(d) %}{% if d < 40 %}{{ m(d+1) }}{{ m(d+1) }}{% endif %}{% endmacro %}{{ m(0) }}",
    "loop in itself": "{% for i in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
    "long lines": "{% for i in range(9999) %}" + "x" * 999 + "{% endfor %}",
    "many copies": "{% set x = 'a' %}{% for i in range(9999) %}{{ ('b' * 1) ~ x }}{% endfor %}",
    "replaced": "{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'|replace('', '" + "b" * 2000 + "') }}",
    "rounding": "{{ 1.5|round(-10**9, 'ceil') }}",
    "width": "{{ '%1000000000d' % 5 }}",
    "brackets": "{{" + "(" * 9000 + "1" + ")" * 9000 + "}}",
    "not": "{{" + "not " * 7000 + "1 }}",
    "sum of many": "{{" + "1 + " * 5000 + "1 }}",
    "blocks": "{% if true %}" * 1000 + "{% endif %}" * 1000,
    "nested loops": "{% for i in [1] %}" * 30 + "{% endfor %}" * 30,
    "digits": "{{ " + "9" * 20000 + " }}",
    "infinity": "{{ '1e999'|float|int }}",
    "control character": "banner \x03 x\n",
    "escape": "{{ '\\x1a' }}",
    "no end": "{% for i in [1] %}",
    "size": "! " * 40000,
}
"""Templates that try to take time, memory or the stack."""


def experiments() -> Iterator[tuple[str, dict[str, str | bytes]]]:
    """Every case: its name, and its files by their paths."""
    for name, text in {**ESCAPES, **TOO_MUCH}.items():
        yield f"template: {name}", {"e.yml": TEMPLATED, "t.j2": text}
    yield "template: not UTF-8", {"e.yml": TEMPLATED, "t.j2": b"interface \xff\n"}
    for name, path in (
        ("absolute", "/etc/passwd"),
        ("above", "../../../../../../../etc/passwd"),
        ("device", "/dev/zero"),
    ):
        yield f"template elsewhere: {name}", {"e.yml": TEMPLATED.replace("t.j2", path)}
        yield f"published elsewhere: {name}", {"e.yml": f"{BASE}compare: {{article: A, published: {path}}}\n"}
