r"""Grades the answer in the last ``\boxed{...}`` of a text, with math-verify where that needs it.

math-verify hands what a model wrote to sympy, which can take unlimited time and memory on a few
characters (``9^{9^{9^9}}``); its own time limit is a signal that only works in the main thread and
does not interrupt big-integer arithmetic. So it runs in a process of its own, which is replaced
when it takes too long. Integers and equal texts, nearly all answers of DAPO-Math, never get there.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import resource
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal

from reference_trainer.tasks import Grade

_TOKEN = re.compile(r"\\boxed\s*\{|\\fbox\s*\{|\\[\\{}]|[{}]")
_INTEGER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)", re.ASCII)
_LONGEST = 1000
"""Characters of an answer; anything longer is wrong."""

_MEMORY = 4 << 30
_FIRST_ANSWER_SECONDS = 60.0
"""Allowance for loading sympy."""

Rules = Literal["math-verify", "prm800k"]


class Verifier:
    """Compares answers in a process of its own. Threads may share it; one comparison at a time.

    Args:
        seconds: Time for one comparison; the process is replaced if it takes longer.
        rules: What compares: math-verify, or mathruler by the rules of PRM800K.
    """

    def __init__(self, seconds: float = 5.0, *, rules: Rules = "math-verify") -> None:
        self._seconds = seconds
        self._rules = rules
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def equal(self, answer: str, truth: str) -> bool | None:
        """True if both mean the same, None if that could not be found out in time."""
        line = json.dumps([answer, truth]).encode() + b"\n"
        with self._lock:
            process = self._started()
            if process is None:
                return None
            reply = _ask(process, line, self._seconds)
            if not reply:
                self._end()
                return None
            return reply == b"1"

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[bytes] | None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve({self._rules!r})"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=Path(__file__).parents[2],
            )
            # Loading sympy must not count against the first comparison.
            if _ask(self._process, b'["1", "1"]\n', _FIRST_ANSWER_SECONDS) != b"1":
                self._end()
                raise ModuleNotFoundError(
                    "the comparison of answers does not start; `pip install "
                    "math-verify[antlr4_13_2] mathruler`"
                )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process.wait()
            self._process = None


def _ask(process: subprocess.Popen[bytes], line: bytes, seconds: float) -> bytes:
    """The one-character reply, empty if there is none in time."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(line)
        process.stdin.flush()
    except OSError:
        return b""
    if not select.select([process.stdout], [], [], seconds)[0]:
        return b""
    return process.stdout.read1(1) if hasattr(process.stdout, "read1") else b""


@cache
def default_verifier() -> Verifier:
    """The verifier of this process."""
    return Verifier()


def last_box(text: str) -> str | None:
    r"""Content of the last complete ``\boxed{...}`` after the first ``</think>``, None without one.

    Braces must balance; the last box is the one that begins last. Time is linear in the text.
    """
    _, marker, after = text.partition("</think>")
    text = after if marker else text
    opened: list[tuple[int, bool]] = []
    best: tuple[int, int] | None = None
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in ("\\\\", "\\{", "\\}"):
            continue
        if token == "}":
            if opened:
                start, is_box = opened.pop()
                if is_box and (best is None or start > best[0]):
                    best = start, match.start()
        else:
            opened.append((match.end(), token != "{"))
    return None if best is None else text[best[0] : best[1]].strip()


def grade_math(text: str, truth: str, *, verifier: Verifier | None = None) -> Grade:
    r"""Grade the last ``\boxed{...}`` of ``text``. Raises nothing, whatever the text.

    Args:
        text: Output of a model.
        truth: The right answer, with or without a box.
        verifier: Where to compare; None for the process's own. An answer that is not compared in
            time is wrong.
    """
    answer = last_box(text)
    if not answer:
        return Grade(False, None)
    short = len(answer) <= _LONGEST
    return Grade(short and bool(same_answer(answer, truth, verifier)), answer)


def same_answer(answer: str, truth: str, verifier: Verifier | None = None) -> bool | None:
    """True if both answers mean the same, None if that could not be found out in time."""
    boxed = last_box(truth)
    answer, truth = _bare(answer), _bare(truth if boxed is None else boxed)
    if not answer or not truth:
        return False
    if answer == truth:
        return True
    if _INTEGER.fullmatch(answer) and _INTEGER.fullmatch(truth):
        return _digits(answer) == _digits(truth)
    return (verifier or default_verifier()).equal(answer, truth)


def _bare(answer: str) -> str:
    """Without dollar signs, blanks at the ends and a full stop."""
    return answer.strip().strip("$").strip().removesuffix(".").strip()


def _digits(integer: str) -> tuple[bool, str]:
    digits = integer.lstrip("+-").replace(",", "").lstrip("0")
    return integer.startswith("-") and bool(digits), digits


def serve(rules: Rules) -> None:
    """The verifier's process: pairs of answers as JSON lines in, ``1`` or ``0`` out."""
    same = {"math-verify": _by_math_verify, "prm800k": _by_prm800k}[rules]()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for line in sys.stdin.buffer:
        answer, truth = json.loads(line)
        try:
            equal = same(answer, truth)
        except (Exception, RecursionError, MemoryError):
            # Anything can come out of a parser fed with hostile text; it is not the right answer.
            equal = False
        sys.stdout.buffer.write(b"1" if equal else b"0")
        sys.stdout.buffer.flush()


def _by_math_verify() -> Callable[[str, str], bool]:
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    configs = [LatexExtractionConfig(), ExprExtractionConfig()]

    def same(answer: str, truth: str) -> bool:
        read = [
            parse(f"\\boxed{{{text}}}", extraction_config=configs, parsing_timeout=None)
            for text in (truth, answer)
        ]
        return bool(all(read) and verify(*read, timeout_seconds=None))

    return same


def _by_prm800k() -> Callable[[str, str], bool]:
    from mathruler.grader import grade_answer

    def same(answer: str, truth: str) -> bool:
        # It evaluates what it reads, of expressions with at most two letters of their own.
        with contextlib.redirect_stdout(io.StringIO()):
            return bool(grade_answer(answer, truth))

    return same
