"""What a submitted kernel may say, read from its text: nothing of it is executed here.

Only what is allowed passes: imports, statements, names and attributes from closed lists. A list of what is forbidden
would have to know every way out; this one has to know the few ways a kernel is written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from neuronqa.fixqueue.reason import Reason
from neuronqa.fixqueue.vocabulary import DTYPES, vocabulary, words

SIZE_LIMIT: Final = 256 * 1024
DEFAULT_DTYPES: Final = ("float32", "bfloat16", "float16")
"""Of a kernel that names none (:mod:`neuronqa.device.neuron.overlay`)."""
OVERLAY: Final = "neuronqa.device.neuron.overlay"
_IMPORTS: Final = {
    "__future__": frozenset({"annotations"}),
    "torch": frozenset({"Tensor", "dtype"}),
    "torch.nn": frozenset({"functional"}),
    "torch.nn.functional": frozenset[str](),
    "math": frozenset({"inf", "nan", "pi", "e", "tau", "sqrt", "log", "exp", "prod", "ceil", "floor", "isfinite"}),
    "functools": frozenset({"partial", "reduce"}),
    "typing": frozenset({"Any", "Final", "Literal", "Optional", "Sequence", "Union"}),
    "collections.abc": frozenset({"Callable", "Iterable", "Iterator", "Mapping", "Sequence"}),
    OVERLAY: frozenset({"kernel"}),
}
_MODULES: Final = frozenset({"torch", "torch.nn.functional", "math", "functools"})
"""What may be imported whole."""
_OUTWARD: Final = words(
    "os sys io pathlib socket subprocess multiprocessing threading time random platform shutil tempfile signal ctypes "
    "http urllib requests resource transformers pickle json inspect traceback"
)
_BUILTINS: Final = words(
    "abs all any bool callable complex dict divmod enumerate filter float frozenset int isinstance len list map max "
    "min pow range reversed round set slice sorted str sum tuple zip None True False Ellipsis NotImplemented "
    "Exception IndexError NotImplementedError RuntimeError TypeError ValueError"
)
_REACHING: Final = {
    **dict.fromkeys(("open", "input", "print", "breakpoint", "exit", "quit", "help"), Reason.SURROUNDINGS),
    **dict.fromkeys(("setattr", "delattr"), Reason.PATCHES_OTHERS),
}
_DEVICES: Final = frozenset({"cpu", "cuda", "meta", "mps", "xpu", "neuron", "privateuseone"})
_STATEMENTS: Final = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return,
    ast.If, ast.For, ast.While, ast.Break, ast.Continue, ast.Pass, ast.Raise, ast.Assert, ast.Delete,
)  # fmt: skip
_AT_THE_TOP: Final = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign, ast.AnnAssign, ast.Expr)
_EXPRESSIONS: Final = (
    ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.Set, ast.ListComp,
    ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Compare, ast.Call, ast.FormattedValue, ast.JoinedStr,
    ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.Slice,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Objection:
    """One thing a kernel may not say, and the line it is on."""

    line: int
    reason: Reason
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


def objections(text: str, targets: tuple[str, ...] = ()) -> tuple[Objection, ...]:
    """Everything that speaks against the text of an overlay, first line first; empty if nothing does.

    `targets`: the operators the item is about; kernels for others than them and their kin are refused. None: any.
    """
    if len(text) > SIZE_LIMIT or "\0" in text:
        return (Objection(0, Reason.NOT_PYTHON, f"it is longer than {SIZE_LIMIT} bytes or holds a NUL"),)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return (Objection(getattr(error, "lineno", 0) or 0, Reason.NOT_PYTHON, f"not Python: {error}"),)
    reader = _Reader(tree)
    try:
        found = [*reader.read(), *_kernels(tree, targets)]
    except RecursionError:
        return (Objection(0, Reason.NOT_PYTHON, "it nests too deep"),)
    return tuple(sorted(found, key=lambda one: one.line))


def declared(text: str) -> dict[str, tuple[str, ...]]:
    """The operators that the kernels of an overlay name, each with its dtypes. Raises SyntaxError for no Python."""
    found: dict[str, tuple[str, ...]] = {}
    for decorator in _decorators(ast.parse(text)):
        op = _operator(decorator)
        if op:
            found[op] = tuple(dict.fromkeys((*found.get(op, ()), *_dtypes(decorator))))
    return found


def _dtypes(decorator: ast.expr) -> tuple[str, ...]:
    """The dtypes a decorator names; none where one of them is not in plain text."""
    call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
    given = [*call.args[1:], *(one.value for one in call.keywords)]
    if not given:
        return DEFAULT_DTYPES
    parts = [part for one in given for part in (one.elts if isinstance(one, ast.Tuple | ast.List) else [one])]
    plain = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return tuple(plain) if len(plain) == len(parts) else ()


def kin(op: str) -> str:
    """What an operator has in common with its overloads, its in-place and out variants and its backward."""
    name = op.removeprefix("aten::").partition(".")[0].strip("_")
    for ending in ("_backward_data", "_backward", "_forward", "_with_indices", "_jvp"):
        name = name.removesuffix(ending)
    return name.removeprefix("native_").removeprefix("_").removesuffix("_dense").removesuffix("_copy")


def _kernels(tree: ast.Module, targets: tuple[str, ...]) -> Iterator[Objection]:
    decorators = list(_decorators(tree))
    if not decorators:
        yield Objection(0, Reason.NO_KERNEL, "it declares no @kernel function")
    family = {kin(target) for target in targets}
    for decorator in decorators:
        op = _operator(decorator)
        if not op.startswith("aten::") or not _dtypes(decorator):
            yield Objection(decorator.lineno, Reason.NO_KERNEL, "a kernel names operator and dtypes in plain text")
        elif family and kin(op) not in family:
            yield Objection(decorator.lineno, Reason.UNRELATED_KERNEL, f"{op} is not what the item is about")


def _decorators(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        yield from node.decorator_list if isinstance(node, ast.FunctionDef) else ()


def _operator(decorator: ast.expr) -> str:
    """What a decorator names in plain text, or an empty text."""
    first = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


class _Reader:
    """Walks a tree once. Collects what each name stands for first: modules, and what the text defines itself."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._modules: dict[str, str] = {}
        self._own: set[str] = set()

    def read(self) -> Iterator[Objection]:
        for statement in self._tree.body:
            yield from self._top(statement)
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from self._import(node)
        self._own |= {name for node in ast.walk(self._tree) for name in _bound(node)}
        for name in sorted(self._own & (set(self._modules) | {"kernel", "isinstance"})):
            if name in self._modules or not self._imports_kernel(name):
                yield Objection(0, Reason.PATCHES_OTHERS, f"it gives {name} another meaning")
        inside = {id(node.value) for node in ast.walk(self._tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(self._tree):
            yield from self._node(node, inside)

    def _imports_kernel(self, name: str) -> bool:
        binds = [node for node in ast.walk(self._tree) if name in set(_bound(node))]
        return all(isinstance(node, ast.ImportFrom) and node.module == OVERLAY for node in binds)

    def _top(self, node: ast.stmt) -> Iterator[Objection]:
        if not isinstance(node, _AT_THE_TOP):
            yield Objection(node.lineno, _reason_of(node), f"{_words(node)} at the top of the file")
            return
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None and not _constant(value):
            yield Objection(node.lineno, Reason.KEEPS_STATE, "what stands outside functions is plain constants")
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            yield Objection(node.lineno, Reason.STATEMENT_REFUSED, "something runs when the file is read")

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[Objection]:
        if node not in self._tree.body:
            yield Objection(node.lineno, Reason.IMPORT_REFUSED, "imports stand at the top of the file")
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in _MODULES or (alias.name == "torch.nn.functional" and not alias.asname):
                    yield Objection(node.lineno, _of_import(alias.name), f"it imports {alias.name}")
                self._modules[alias.asname or alias.name] = alias.name
            return
        module = node.module or ""
        for alias in node.names:
            if node.level or alias.name not in _IMPORTS.get(module, ()):
                yield Objection(node.lineno, _of_import(module), f"it imports {alias.name} of {module or '.'}")
            elif module == "torch.nn":
                self._modules[alias.asname or alias.name] = "torch.nn.functional"
            elif module == OVERLAY and alias.asname:
                yield Objection(node.lineno, Reason.IMPORT_REFUSED, "the decorator keeps its name")
            else:
                self._own.add(alias.asname or alias.name)

    def _node(self, node: ast.AST, inside: set[int]) -> Iterator[Objection]:
        if isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
            yield Objection(node.lineno, _reason_of(node), _words(node))
        if isinstance(node, ast.expr) and not isinstance(node, _EXPRESSIONS):
            yield Objection(node.lineno, Reason.STATEMENT_REFUSED, _words(node))
        match node:
            case ast.FunctionDef():
                yield from self._function(node)
            case ast.Lambda():
                yield from _defaults(node.args)
            case ast.Name():
                yield from self._name(node, inside)
            case ast.Attribute():
                yield from self._attribute(node)
            case ast.Constant(value=str(text)) if text.partition(":")[0] in _DEVICES:
                yield Objection(node.lineno, Reason.FALLS_BACK, f"it names the device {text!r}")
            case _:
                return

    def _function(self, node: ast.FunctionDef) -> Iterator[Objection]:
        yield from _defaults(node.args)
        for decorator in node.decorator_list:
            plain = isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name)
            if not plain or decorator.func.id != "kernel" or node not in self._tree.body:  # type: ignore[attr-defined]
                yield Objection(decorator.lineno, Reason.STATEMENT_REFUSED, "the only decorator is kernel(...)")

    def _name(self, node: ast.Name, inside: set[int]) -> Iterator[Objection]:
        name = node.id
        if name in self._modules:
            if id(node) not in inside:
                yield Objection(node.lineno, Reason.NAME_REFUSED, f"{name} is handed on as a value")
        elif name not in self._own and name not in _BUILTINS:
            yield Objection(node.lineno, _REACHING.get(name, Reason.NAME_REFUSED), f"it uses the name {name}")

    def _attribute(self, node: ast.Attribute) -> Iterator[Objection]:
        if not isinstance(node.ctx, ast.Load):
            yield Objection(node.lineno, Reason.PATCHES_OTHERS, f"it sets or deletes the attribute {node.attr}")
            return
        path = self._path(node)
        allowed = _allowed(path) if path else node.attr in vocabulary().attributes
        if not allowed:
            said = ".".join(path) if path else f".{node.attr}"
            reason = Reason.FALLS_BACK if node.attr in ("cpu", "numpy", "tolist", "item") else Reason.NAME_REFUSED
            yield Objection(node.lineno, reason, f"it uses {said}, which is no tensor operator")

    def _path(self, node: ast.Attribute) -> tuple[str, ...]:
        """The dotted path of what belongs to a module, or nothing for an attribute of a value."""
        names = [node.attr]
        value = node.value
        while isinstance(value, ast.Attribute):
            names.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name) or value.id not in self._modules:
            return ()
        return (*self._modules[value.id].split("."), *reversed(names))


def _allowed(path: tuple[str, ...]) -> bool:
    """May this path be used? Its shorter beginnings are nodes of their own, so `torch.nn` passes as a step."""
    known = vocabulary()
    match path:
        case ("torch", "nn" | "ops") | ("torch", "nn", "functional") | ("torch", "ops", "aten"):
            return True
        case ("torch", name):
            return name in known.functions
        case ("torch", "nn", "functional", name):
            return name in known.functional
        case ("torch", "ops", "aten", name):
            return name in known.operators
        case ("torch", "ops", "aten", _, overload):
            return not overload.startswith("_") and overload not in _OF_OPERATORS
        case ("torch", dtype, name):
            return dtype in DTYPES and name in known.attributes
        case ("math" | "functools" as module, name):
            return name in _IMPORTS[module] or (module == "math" and not name.startswith("_"))
        case _:
            return False


_OF_OPERATORS: Final = words(
    "py_impl redispatch decompose op overloads name namespace tags py_kernels has_kernel_for_dispatch_key "
    "has_kernel_for_any_dispatch_key impl dispatch"
)


def _defaults(arguments: ast.arguments) -> Iterator[Objection]:
    for value in (*arguments.defaults, *(one for one in arguments.kw_defaults if one is not None)):
        if not _constant(value):
            yield Objection(value.lineno, Reason.KEEPS_STATE, "a default that is no plain constant outlives its call")


def _constant(node: ast.expr) -> bool:
    """Numbers, texts, tuples of them, dtypes, and arithmetic of them."""
    match node:
        case ast.Constant() | ast.Name() | ast.Attribute():
            return True
        case ast.Tuple(elts=parts):
            return all(map(_constant, parts))
        case ast.UnaryOp(operand=value):
            return _constant(value)
        case ast.BinOp(left=left, right=right):
            return _constant(left) and _constant(right)
        case ast.Lambda():
            return True
        case _:
            return False


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a node gives a meaning."""
    match node:
        case ast.FunctionDef(name=name):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case _:
            return


def _of_import(module: str) -> Reason:
    root = module.partition(".")[0]
    if root == "neuronqa":
        return Reason.TOUCHES_CHECKER
    if root in ("gc", "unittest", "importlib", "builtins", "weakref", "types"):
        return Reason.PATCHES_OTHERS
    return Reason.SURROUNDINGS if root in _OUTWARD else Reason.IMPORT_REFUSED


def _reason_of(node: ast.AST) -> Reason:
    match node:
        case ast.Try() | ast.TryStar() | ast.With():
            return Reason.SWALLOWS_EXCEPTIONS
        case ast.Global() | ast.Nonlocal():
            return Reason.KEEPS_STATE
        case _:
            return Reason.STATEMENT_REFUSED


def _words(node: ast.AST) -> str:
    return f"it has a {type(node).__name__.lower()} statement"
