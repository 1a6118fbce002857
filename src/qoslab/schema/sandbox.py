"""Sandbox for untrusted templates: Jinja2 without access to files, code or unlimited resources.

Jinja2's sandbox hides Python's attributes from templates; this one removes more. The only function is `range`; there
are a few filters and tests; values are texts, numbers, truth values and lists of them, and have no methods. The work of
a template is counted: each node of each iteration of a loop or macro, each character or item that is created or
examined. A template is refused above `WORK_LIMIT`, and all templates of a check together above `CHECK_LIMIT`: sooner
than by a time limit, and at the same place on every machine. Between two counts a template does the work of at most
`NODE_LIMIT` nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes, pass_eval_context
from jinja2.environment import TemplateModule
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.loaders import BaseLoader
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS

WORK_LIMIT = 200_000
"""Maximum number of evaluated nodes and created characters; a template of this repository needs about a hundred."""
CHECK_LIMIT = 2_000_000
"""The same maximum for all renderings in the check of a file, which renders a configuration for each of its
combinations. Parsing their output takes most of the time: about a second for 600,000 characters.
"""
INCLUDE_WORK = 100
"""Work that is counted for loading another template."""
VALUE_LIMIT = 2**16
"""Maximum characters of a text, items of a list, and bits of a whole number."""

RANGE_LIMIT = 10_000
"""Maximum length of a `range(…)`."""
NODE_LIMIT = 5_000
"""Maximum number of nodes of a template's tree; the longest of this repository has 100."""

_FILTERS = (
    *("abs", "capitalize", "d", "default", "first", "float", "int", "last", "list", "lower", "max", "min", "reverse"),
    *("sort", "title", "trim", "unique", "upper"),
)
_TESTS = (
    *(
        "boolean",
        "defined",
        "divisibleby",
        "even",
        "false",
        "float",
        "in",
        "integer",
        "none",
        "number",
        "odd",
        "string",
    ),
    *("true", "undefined", "==", "eq", "!=", "ne", "<", "lt", "<=", "le", ">", "gt", ">=", "ge"),
)
_LOOP = frozenset(
    {
        *("index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"),
        *("previtem", "nextitem", "cycle", "changed"),
    }
)
_UNKNOWN = (nodes.Dict, nodes.NSRef, nodes.Extends, nodes.ScopedEvalContextModifier, nodes.EvalContextModifier)
"""Syntax that no configuration needs."""


class LimitError(SecurityError):
    """A template that exceeds a limit."""


@dataclass
class _WorkAccount:
    """Work of one rendering so far, or of all renderings during a check."""

    limit: int = WORK_LIMIT
    does: str = "it does"
    check_account: _WorkAccount | None = None
    work: int = 0

    def charge(self, work: int) -> None:
        self.work += work
        if self.work > self.limit:
            steps = "steps (nodes evaluated, characters produced or read)"
            raise LimitError(f"{self.does} more than {self.limit} {steps}")
        if self.check_account is not None:
            self.check_account.charge(work)


_ACCOUNT: ContextVar[_WorkAccount] = ContextVar("account")
_CHECK: ContextVar[_WorkAccount | None] = ContextVar("check", default=None)


@contextmanager
def limited_rendering() -> Iterator[None]:
    """Count the work of the block as one rendering, within its limits."""
    token = _ACCOUNT.set(_WorkAccount(check_account=_CHECK.get()))
    try:
        yield
    finally:
        _ACCOUNT.reset(token)


@contextmanager
def limited_check() -> Iterator[None]:
    """Count the work of the block as all renderings of a check, within a common limit."""
    token = _CHECK.set(_WorkAccount(CHECK_LIMIT, "the configurations of all combinations take"))
    try:
        yield
    finally:
        _CHECK.reset(token)


def _value_size(value: Any) -> int:
    """Return the number of characters or items."""
    return len(value) if isinstance(value, str | list | tuple | dict | range) else 1


def _count_examined(*values: Any) -> None:
    """Count the characters or items of values that may be examined."""
    _ACCOUNT.get().charge(sum(map(_value_size, values)))


def _count_as_examined(value: Any) -> Any:
    """Count the value as examined, and return it."""
    _count_examined(value)
    return value


def _check_created(value: Any) -> Any:
    """Return the value if it is not too large, and count its size."""
    match value:
        case str() | list() | tuple() | dict() | range():
            size = len(value)
        case int():
            size = value.bit_length()
        case _:
            size = 1
    if size > VALUE_LIMIT:
        raise LimitError(f"one of its values has {size} characters, items or bits, expected at most {VALUE_LIMIT}")
    _ACCOUNT.get().charge(1 + size)
    return value


def _checked_scalar(value: Any) -> Any:
    """Return the value if it is a text, a number or a truth value."""
    if isinstance(value, Undefined):
        str(value)  # raises the error of the unknown name
    if not isinstance(value, str | int | float | bool | None):
        raise SecurityError(f"found a {type(value).__name__} there, expected a text or a number")
    return _check_created(value)


@pass_eval_context  # so that nothing is evaluated during compilation of the template
def _finalize(_: Any, value: Any) -> Any:
    """Return the output of `{{ … }}`."""
    return _checked_scalar(value)


def _with_charge(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        _count_examined(*arguments, *named.values())
        result = function(*arguments, **named)
        if not isinstance(result, str | int | float | bool | list | tuple | Undefined | None):
            result = list(islice(result, VALUE_LIMIT + 1))
        return _check_created(result)

    return call


def _counting_test(test: Any) -> Callable[..., Any]:
    @wraps(test)
    def call(*arguments: Any) -> Any:
        _count_examined(*arguments)
        return test(*arguments)

    return call


def _join_filter(items: Any, between: Any = "") -> str:
    parts = [str(_checked_scalar(item)) for item in items]
    _ACCOUNT.get().charge(len(str(_checked_scalar(between))) * len(parts))
    return str(_check_created(str(between).join(parts)))


def _replace_filter(text: Any, old: Any, new: Any) -> str:
    text, old, new = (str(_checked_scalar(each)) for each in (text, old, new))
    _ACCOUNT.get().charge(len(text) + text.count(old) * len(new))
    return str(_check_created(text.replace(old, new)))


def _round_filter(value: Any, digits: Any = 0, method: Any = "common") -> Any:
    if not isinstance(digits, int) or abs(digits) > 20:
        raise SecurityError("found rounding to more than 20 digits, expected at most 20")
    return _check_created(FILTERS["round"](value, digits, method))


def _length_filter(value: Any) -> int:
    return len(value)


def _string_filter(value: Any) -> str:
    return str(_checked_scalar(value))


def _sum_filter(items: Any) -> Any:
    total: Any = 0
    for item in items:
        if isinstance(item, str) or not isinstance(item, int | float):
            raise SecurityError(f"found a {type(item).__name__} in a sum, expected numbers")
        total = _check_created(total + item)
    return total


def _concatenate(*parts: Any) -> str:
    return str(_check_created("".join(str(_checked_scalar(part)) for part in parts)))


def _limited_range(*limits: int) -> range:
    found = range(*limits)
    if found[RANGE_LIMIT:]:
        raise LimitError(f"found a range of more than {RANGE_LIMIT} numbers, expected fewer")
    return found


class Sandbox(ImmutableSandboxedEnvironment):
    """Environment for untrusted templates. Rendering needs `counted()` around it."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
    # Functions that `_Guard` inserts into templates.
    scalar = staticmethod(_checked_scalar)
    count_created = staticmethod(_check_created)
    count_examined = staticmethod(_count_as_examined)
    concatenate = staticmethod(_concatenate)

    def __init__(self, loader: BaseLoader) -> None:
        super().__init__(
            loader=loader,
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,  # IOS configuration, not HTML
            optimized=False,  # else constants are evaluated during compilation of the template
            finalize=_finalize,
        )
        self.globals = {"range": _limited_range}
        self.filters = {name: _with_charge(FILTERS[name]) for name in _FILTERS}
        self.filters |= {
            "join": _join_filter,
            "replace": _replace_filter,
            "round": _round_filter,
            "sum": _sum_filter,
            "string": _string_filter,
        }
        self.filters |= {"length": _length_filter, "count": _length_filter}
        self.tests = {name: _counting_test(TESTS[name]) for name in _TESTS}

    # Objects that templates may access

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may access the attribute: attributes of a loop, and definitions of an imported
        template.
        """
        if isinstance(obj, Undefined):
            str(obj)  # raises the error with its name
        if isinstance(obj, LoopContext):
            return attr in _LOOP
        return isinstance(obj, TemplateModule) and not attr.startswith("_")

    def is_safe_callable(self, obj: Any) -> bool:
        """Return whether a template may call the object: `range`, macros, methods of a loop, and the inserted
        counters.
        """
        if isinstance(obj, Macro | LoopContext | BlockReference):
            return True
        if getattr(obj, "__self__", None).__class__ is LoopContext:
            return True
        return (
            any(
                obj is each
                for each in (_limited_range, _checked_scalar, _check_created, _count_as_examined, _concatenate)
            )
            or obj == self.tick
        )

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as there
        """Call an allowed object. The message of a refusal shows no value, as its length is unlimited."""
        if isinstance(__obj, Undefined):
            str(__obj)
        if not __self.is_safe_callable(__obj):
            raise SecurityError(
                f"found a call of an object of type {type(__obj).__name__}, expected range(…) or a macro"
            )
        if isinstance(getattr(__obj, "__self__", None), LoopContext):
            _count_examined(*args)  # loop.changed compares them
        return __context.call(__obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Return the result of an operator if it is not too large. Texts and lists only support `+`."""
        both = (left, right)
        for each in both:
            if isinstance(each, Undefined):
                str(each)
        if not all(isinstance(each, int | float) for each in both):
            kinds = {type(each) for each in both}
            if operator != "+" or len(kinds) != 1 or not isinstance(left, str | list):
                names = " and a ".join(type(each).__name__ for each in both)
                raise SecurityError(f"found {operator} of a {names}, expected numbers")
            _ACCOUNT.get().charge(len(left) + len(right))
        elif operator == "**" and not (abs(right) <= 64 and abs(left) <= 2**64):
            raise LimitError("found a power of large numbers, expected at most 2 ** 64")
        return _check_created(super().call_binop(context, operator, left, right))

    def tick(self, work: int) -> bool:
        """Count an iteration of a loop or a macro."""
        _ACCOUNT.get().charge(work)
        return True

    # Insertion of the counters

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        _guard_template(tree, self)
        return tree


def _guard_template(tree: nodes.Template, environment: Sandbox) -> None:
    """Refuse syntax that no configuration needs, and insert counters into the rest."""
    for unknown in tree.find_all(_UNKNOWN):
        raise TemplateSyntaxError(f"found {type(unknown).__name__.lower()}, not supported in templates", unknown.lineno)
    for each in tree.find_all(nodes.Name):
        if each.name in ("varargs", "kwargs", "self"):
            raise TemplateSyntaxError(f'found "{each.name}", not supported in templates', each.lineno)
    _Guard().visit(tree)
    if (size := sum(1 for _ in tree.find_all(nodes.Node))) > NODE_LIMIT:
        raise TemplateSyntaxError(f"found {size} words, operators and texts, expected at most {NODE_LIMIT}", 1)
    tree.set_environment(environment)


class _Guard:
    """Inserts counters into a tree, from the leaves up."""

    def visit(self, node: nodes.Node) -> int:
        """Return the work of one pass through the node."""
        work = 1 + (len(node.data) if isinstance(node, nodes.TemplateData) else 0)
        for name, value in node.iter_fields():
            if isinstance(value, nodes.Node):
                work += self.visit(value)
                setattr(node, name, self.wrap_node(value))
            elif isinstance(value, list):
                work += sum(self.visit(each) for each in value if isinstance(each, nodes.Node))
                items = isinstance(node, nodes.List | nodes.Tuple)
                value[:] = [self.wrap_node(each, item=items) for each in value]
        if isinstance(node, nodes.Compare | nodes.Operand):
            node.expr = _guarded_call("count_examined", node.expr, lineno=node.lineno)
        elif isinstance(node, nodes.Include | nodes.Import | nodes.FromImport):
            work += INCLUDE_WORK
        tick = _guarded_call("tick", nodes.Const(work), lineno=node.lineno)
        if isinstance(node, nodes.For | nodes.Macro | nodes.CallBlock | nodes.Template | nodes.Block):
            node.body.insert(0, nodes.ExprStmt(tick, lineno=node.lineno))
        if isinstance(node, nodes.For) and node.test is not None:
            node.test = nodes.And(tick, node.test, lineno=node.lineno)
        return work

    def wrap_node(self, node: Any, *, item: bool = False) -> Any:
        """Return the node with its size counted; `item` marks an item of a list, as nested lists could grow
        exponentially.
        """
        if isinstance(node, nodes.Concat):
            return _guarded_call("concatenate", *node.nodes, lineno=node.lineno)
        if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
            return _guarded_call("count_created", node, lineno=node.lineno)
        literal = nodes.Const | nodes.List | nodes.Tuple
        if item and isinstance(node, nodes.Expr) and not isinstance(node, literal):
            return node if getattr(node, "ctx", "") == "store" else _guarded_call("scalar", node, lineno=node.lineno)
        return node


def _guarded_call(name: str, *arguments: nodes.Expr, lineno: int) -> nodes.Call:
    function = nodes.EnvironmentAttribute(name, lineno=lineno)
    return nodes.Call(function, list(arguments), [], None, None, lineno=lineno)
