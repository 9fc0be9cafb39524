"""Which operators an overlay file says it implements, read from its text: nothing in it is executed."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from neuronqa.errors import BadInput


def kernels(path: str) -> dict[str, str]:
    """One hash per operator: of its function, and of everything in the file that is no kernel.

    Raises BadInput for a file that is unreadable, is not Python, or declares no kernel by a plain text name.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        tree = ast.parse(text, path)
    except OSError as error:
        raise BadInput(f"the overlay cannot be read: {error.strerror}", where=path) from error
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"the overlay is not Python: {error}", where=path) from error
    functions = {node: _operators(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    rest = "".join(ast.dump(node) for node in tree.body if not functions.get(node))  # type: ignore[call-overload]
    found = {op: _hash(ast.dump(node) + rest) for node, names in functions.items() for op in names}
    if not found:
        raise BadInput("the overlay has no @kernel function", where=path)
    return found


def _operators(function: ast.FunctionDef) -> list[str]:
    """The first arguments of its `@kernel(...)` decorators."""
    return [
        decorator.args[0].value
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call)
        and _name(decorator.func) == "kernel"
        and decorator.args
        and isinstance(decorator.args[0], ast.Constant)
        and isinstance(decorator.args[0].value, str)
    ]


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
