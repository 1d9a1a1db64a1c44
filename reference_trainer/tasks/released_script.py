"""Runs a script as the released code's grader does. Its text is run in the sandbox.

Standard library only. The script becomes a function of a module, its imports come before it, and
its streams are texts: programs with ``global``, ``sys.stdin.buffer`` or a main guard that is not
the last statement fail, whatever they compute.
"""

from __future__ import annotations

import ast
import builtins
import io
import sys
import types
from typing import Any

_FUNCTION = "wrapped_function"


def as_function(source: str) -> str:
    """``source`` as imports and a function, its main guard unwrapped; unchanged if it is wrong."""
    try:
        body = ast.parse(source).body
        if isinstance(body[-1], ast.If) and _is_main_guard(body[-1]):
            body = [*body[:-1], *body[-1].body]
        imports: list[ast.stmt] = [
            statement for statement in body if isinstance(statement, ast.Import | ast.ImportFrom)
        ]
        rest = [
            statement
            for statement in body
            if not isinstance(statement, ast.Import | ast.ImportFrom)
        ]
        wrapper = ast.parse(f"def {_FUNCTION}(): pass")
        assert isinstance(wrapper.body[0], ast.FunctionDef)
        wrapper.body[0].body = rest
        return f"{ast.unparse(ast.Module(imports, []))}\n{ast.unparse(wrapper)}\n"
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return source


def _is_main_guard(statement: ast.If) -> bool:
    return ast.unparse(statement.test) == "__name__ == '__main__'"


def run(source: str, preamble: str) -> None:
    """Run ``source`` on the standard input; its output goes to the standard output at its end."""
    given, out = sys.stdin.read(), sys.stdout
    module = types.ModuleType("solution")
    names: dict[str, Any] = module.__dict__
    program = as_function(source)
    exec(compile(f"{preamble}\n{program}", "solution.py", "exec"), names)
    if "class Solution" in program:
        names["Solution"]()  # what it looks for its function in: there is none
        raise NameError(_FUNCTION)
    sys.stdin, sys.stdout = io.StringIO(given), io.StringIO()
    builtins.open = lambda *_, **__: io.StringIO(given)  # type: ignore[assignment]
    written = sys.stdout
    try:
        names[_FUNCTION]()
    except SystemExit:
        pass
    finally:
        sys.stdout = out
    out.write(written.getvalue())
