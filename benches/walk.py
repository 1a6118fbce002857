"""Counts how often a function and all that it calls hand a run's folder around; prints the calls and the count.

    python benches/walk.py [--source src] [--start qoslab.analysis.run_analysis:analyse] [--argument folder]

The walk follows the calls of a function in the order of its source, to all functions of the package that are given a
place: a value of the types RunFolder, OpenRun, Cell or Path, a part of one, or a collection of such. Each function's
body is entered once, at its first call. Calls that follow each other in one file are one stop; a return is a stop in a
file in which there was one before, so returns are stops less files. Types come from annotations and constructors;
properties, and calls whose function cannot be told from these, are not followed.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path

PLACES = frozenset({"RunFolder", "OpenRun", "Cell"})
DERIVED = frozenset({"with_name", "relative_to", "resolve", "items", "values"})
"""Methods whose result has the places of the object."""
COLLECTED = frozenset({"sorted", "list", "tuple", "dict", "Path", "enumerate"})
"""Functions whose result has the places of an argument."""


@dataclass(frozen=True, eq=False)
class Module:
    """A source file: its functions and classes by name, and the places of imported names."""

    name: str
    file: Path

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed source."""
        return ast.parse(self.file.read_text(encoding="utf-8"))

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """Functions at the top of the file."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """Classes at the top of the file."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}

    @cached_property
    def imports(self) -> dict[str, tuple[str, str | None]]:
        """Imported names: their module, and the name in it if it is not the module itself."""
        found: dict[str, tuple[str, str | None]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {each.asname or each.name: (node.module, each.name) for each in node.names}
            elif isinstance(node, ast.Import):
                found |= {each.asname or each.name: (each.name, None) for each in node.names}
        return found


Class = tuple[Module, ast.ClassDef]


@dataclass(frozen=True)
class Function:
    """A function, or a method of a class."""

    module: Module
    owner: ast.ClassDef | None
    node: ast.FunctionDef

    @property
    def parameters(self) -> list[ast.arg]:
        """All but those of keywords alone."""
        return [*self.node.args.posonlyargs, *self.node.args.args]

    def __str__(self) -> str:
        owner = "" if self.owner is None else f"{self.owner.name}."
        return f"{self.module.name}: {owner}{self.node.name}"


@dataclass
class Package:
    """Sources of the package, read as they are needed."""

    top: Path
    _modules: dict[str, Module | None] = field(default_factory=dict)

    def module(self, name: str) -> Module | None:
        """The module of a name; None outside the package."""
        if name not in self._modules:
            path = self.top.joinpath(*name.split("."))
            files = [path / "__init__.py", path.with_suffix(".py")]
            file = next((each for each in files if each.is_file()), None)
            self._modules[name] = None if file is None else Module(name, file)
        return self._modules[name]

    def meaning(self, module: str, name: str | None) -> Function | Class | Module | None:
        """What a name in a module means, wherever it is imported from."""
        here = self.module(module)
        if here is None or name is None:
            return here
        if name in here.functions:
            return Function(here, None, here.functions[name])
        if name in here.classes:
            return here, here.classes[name]
        if (inner := self.module(f"{module}.{name}")) is not None:
            return inner
        return self.meaning(*here.imports[name]) if name in here.imports else None

    def method(self, of: Class, name: str) -> Function | None:
        """A method of a class or of those that it is derived from."""
        module, owner = of
        for node in owner.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return Function(module, owner, node)
        bases = filter(None, (self.of_annotation(module, base) for base in owner.bases))
        return next(filter(None, (self.method(base, name) for base in bases)), None)

    def of_annotation(self, module: Module, annotation: ast.expr | None) -> Class | None:
        """The class of the package that an annotation names, or the elements of a collection."""
        match annotation:
            case ast.Constant(value=str(text)):
                return self.of_annotation(module, ast.parse(text, mode="eval").body)
            case ast.Name(id=name):
                found = self.meaning(module.name, name)
                return found if isinstance(found, tuple) else None
            case ast.BinOp(left=left, right=right):
                return self.of_annotation(module, left) or self.of_annotation(module, right)
            case ast.Subscript(slice=inner):
                elements = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                return next(filter(None, (self.of_annotation(module, each) for each in reversed(elements))), None)
        return None


class Walk:
    """Functions in the order of their calls."""

    def __init__(self, package: Package, start: Function, argument: str) -> None:
        self.package = package
        self.calls: list[tuple[int, Function]] = []
        self._entered: set[str] = set()
        self.enter(start, {argument}, 0)

    def enter(self, function: Function, places: set[str], depth: int) -> None:
        """Follow a call with places in these parameters."""
        self.calls.append((depth, function))
        if str(function) not in self._entered:
            self._entered.add(str(function))
            _Body(self, function, places, depth).follow()

    @property
    def stops(self) -> list[str]:
        """Files in the order in which they are come to."""
        return [name for name, _ in groupby(function.module.name for _, function in self.calls)]

    @property
    def returns(self) -> int:
        """Stops in files in which there was one before."""
        return len(self.stops) - len(set(self.stops))


class _Body:
    """The body of a function with places in some of its variables."""

    def __init__(self, walk: Walk, function: Function, places: set[str], depth: int) -> None:
        self._walk, self._package, self._function, self._depth = walk, walk.package, function, depth
        self._places = set(places)
        arguments = [*function.parameters, *function.node.args.kwonlyargs]
        of = self._package.of_annotation
        self._types = {each.arg: of(function.module, each.annotation) for each in arguments}
        if function.owner is not None and arguments and arguments[0].arg in ("self", "cls"):
            self._types[arguments[0].arg] = (function.module, function.owner)

    def follow(self) -> None:
        """Follow the calls, statement after statement."""
        for node in _in_order(self._function.node.body):
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self._bind(target, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._bind(target, value)
                case ast.NamedExpr(target=target, value=value):
                    self._bind(target, value)
                case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                    self._bind(target, value)
                case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                    self._bind(target, value)
                case ast.Call():
                    self._call(node)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            for each in target.elts:
                self._bind(each, value)
        elif isinstance(target, ast.Name):
            if self._has_place(value):
                self._places.add(target.id)
            self._types[target.id] = self._type_of(value) or self._types.get(target.id)

    def _has_place(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._places
            case ast.Attribute(value=value):
                return self._has_place(value) and self._is_place(node)
            case ast.BinOp(left=left, op=ast.Div()):
                return self._has_place(left)
            case ast.Subscript(value=value) | ast.NamedExpr(value=value) | ast.Starred(value=value):
                return self._has_place(value)
            case ast.IfExp(body=body, orelse=other):
                return self._has_place(body) or self._has_place(other)
            case ast.BoolOp(values=values) | ast.List(elts=values) | ast.Tuple(elts=values) | ast.Dict(values=values):
                return any(map(self._has_place, values))
            case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value) | ast.SetComp(elt=value):
                return self._has_place(value)
            case ast.DictComp(value=value):
                return self._has_place(value)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in DERIVED and self._has_place(value):
                return True
            case ast.Call(func=ast.Name(id=name), args=values) if name in COLLECTED and any(
                map(self._has_place, values)
            ):
                return True
            case ast.Call():
                return self._is_place(node)
        return False

    def _is_place(self, node: ast.Attribute | ast.Call) -> bool:
        """Return whether an attribute or a result is one by its type."""
        if isinstance(node, ast.Attribute) and node.attr in ("path", "parent"):
            return True
        of = self._type_of(node)
        if of is not None and of[1].name in PLACES:
            return True
        if isinstance(node, ast.Call):
            called = self._called(node)
            function = called if isinstance(called, Function) else None
        else:
            owner = self._type_of(node.value)
            function = None if owner is None else self._package.method(owner, node.attr)
        returns = None if function is None else function.node.returns
        return returns is not None and "Path" in ast.unparse(returns)

    def _type_of(self, node: ast.expr) -> Class | None:
        match node:
            case ast.Name(id=name):
                return self._types.get(name)
            case ast.Attribute(value=value, attr=name):
                owner = self._type_of(value)
                return None if owner is None else self._type_of_attribute(owner, name)
            case ast.Call():
                called = self._called(node)
                if isinstance(called, tuple):
                    return called
                return None if called is None else self._package.of_annotation(called.module, called.node.returns)
            case ast.Subscript(value=value) | ast.NamedExpr(value=value):
                return self._type_of(value)
            case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value) | ast.DictComp(value=value):
                return self._type_of(value)
            case ast.BoolOp(values=values):
                return next(filter(None, map(self._type_of, values)), None)
            case ast.IfExp(body=body, orelse=other):
                return self._type_of(body) or self._type_of(other)
        return None

    def _type_of_attribute(self, owner: Class, name: str) -> Class | None:
        if (method := self._package.method(owner, name)) is not None:
            return self._package.of_annotation(method.module, method.node.returns)
        module, definition = owner
        for node in ast.walk(definition):
            if isinstance(node, ast.AnnAssign) and name in (
                getattr(node.target, "id", ""),
                getattr(node.target, "attr", ""),
            ):
                return self._package.of_annotation(module, node.annotation)
        return None

    def _called(self, call: ast.Call) -> Function | Class | None:
        """The function or class of a call."""
        found: Function | Class | Module | None = None
        match call.func:
            case ast.Name(id=name):
                found = self._package.meaning(self._function.module.name, name)
            case ast.Attribute(value=value, attr=name):
                if (owner := self._type_of(value)) is not None:
                    return self._package.method(owner, name)
                if isinstance(value, ast.Name):
                    outer = self._package.meaning(self._function.module.name, value.id)
                    if isinstance(outer, tuple):
                        return self._package.method(outer, name)
                    found = self._package.meaning(outer.name, name) if isinstance(outer, Module) else None
        return None if isinstance(found, Module) else found

    def _call(self, call: ast.Call) -> None:
        called = self._called(call)
        places = set()
        if isinstance(called, tuple):
            called = self._package.method(called, "__init__")
            constructed = True
        else:
            constructed = False
        if called is None:
            return
        names = [each.arg for each in called.parameters]
        if names and names[0] in ("self", "cls"):
            if isinstance(call.func, ast.Attribute) and not constructed and self._has_place(call.func.value):
                places.add(names[0])
            names = names[1:]
        places |= {name for name, value in zip(names, call.args, strict=False) if self._has_place(value)}
        places |= {each.arg for each in call.keywords if each.arg and self._has_place(each.value)}
        if places:
            self._walk.enter(called, places | ({"self"} if constructed else set()), self._depth + 1)


def _in_order(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Nodes in the order in which they are evaluated: arguments before their call, values before what they are
    bound to, the iterable of a comprehension before its element; no functions and classes inside."""
    for statement in body:
        yield from _evaluated(statement)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        children = [*node.generators, *(each for each in children if not isinstance(each, ast.comprehension))]
    if isinstance(node, ast.For):
        yield from _evaluated(node.iter)
        yield node
        children = [*node.body, *node.orelse]
    elif isinstance(node, ast.comprehension):
        yield from _evaluated(node.iter)
        yield node
        children = list(node.ifs)
    for child in children:
        yield from _evaluated(child)
    if not isinstance(node, ast.For | ast.comprehension):
        yield node


def walk(source: Path, start: str, argument: str) -> Walk:
    """The walk from a function (`MODULE:NAME`) with a place in one of its arguments."""
    package = Package(source)
    module, _, name = start.partition(":")
    found = package.meaning(module, name)
    if not isinstance(found, Function):
        raise SystemExit(f"found no function {start} in {source}")
    return Walk(package, found, argument)


def main() -> None:
    """Print the calls and the count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=Path(__file__).resolve().parents[1] / "src")
    parser.add_argument("--start", default="qoslab.analysis.run_analysis:analyse")
    parser.add_argument("--argument", default="folder")
    chosen = parser.parse_args()
    found = walk(chosen.source, chosen.start, chosen.argument)
    for depth, function in found.calls:
        print("  " * depth + str(function))
    print(f"{len(found.stops)} stops in {len(set(found.stops))} files: {found.returns} returns")


if __name__ == "__main__":
    main()
