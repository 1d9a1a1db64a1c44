# ruff: noqa: E501
r"""Inputs of ours for the functions of the paper's code: ordinary ones and every edge we know."""

from __future__ import annotations

from typing import Any

SELECTIONS = [
    "\\boxed{2}",
    "Solution 1 is wrong. \\boxed{3}",
    "\\boxed{1} then \\boxed{2}",
    "\\BOXED{3}",
    "\\boxed{ 2 }",
    "Solution 1 fails, so \\boxed{ 2 }",
    "\\boxed{7}",
    "\\boxed{7} so 2",
    "so 2 and not \\boxed{7}",
    "\\boxed{0}",
    "\\boxed{02}",
    "\\boxed{\\text{2}}",
    "\\boxed{Solution 2}",
    "\\boxed{2",
    "\\boxed{2.}",
    "\\boxed {2}",
    "\\boxed{\u0663}",
    "I choose 2.",
    "Solution **3** is right",
    "(1)",
    "Solution 2: its answer is 14",
    "of the 3 solutions I choose 1",
    "solution_2",
    "x2",
    "9 - 4",
    "the answer is 42",
    "v1.2",
    "3rd",
    "3-2",
    "\u0662",
    "",
    "None of them.",
    "\n\n\\boxed{3}\n",
    "1\\boxed{3}",
    "\\boxed{10} or 3",
    "\\boxed{-2}",
]

VERDICTS = [
    "\\boxed{Correct}",
    "\\boxed{Incorrect}",
    "\\BOXED{incorrect}",
    "\\boxed{CORRECT}",
    "\\boxed{ Correct }",
    "\\boxed{\\text{Correct}}",
    "\\boxed{Correct.}",
    "\\boxed{Correct or Incorrect}",
    "\\boxed{Correct} no, \\boxed{Incorrect}",
    "\\boxed{Incorrect} no, \\boxed{Correct}",
    "\\boxed{5} \\boxed{Correct}",
    "\\boxed {Correct}",
    "\\boxed{Correct",
    "This is not correct.",
    "The solution is correct.",
    "Correct",
    "\\boxed{\\boxed{Correct}}",
    "boxed{Correct}",
    "\\fbox{Correct}",
    "\\boxed{Incorrect} since ...",
    "",
]

PLANS = [
    "STRATEGY 1: algebra\nSTRATEGY 2: geometry",
    "STRATEGY 2: b\nSTRATEGY 1: a\nmore\n",
    "Plan.\nSTRATEGY 1: a",
    "strategy 1 : left Strategy 2: right",
    "STRATEGY1:a STRATEGY2:b",
    "STRATEGY 1: same\nSTRATEGY 1: again",
    "STRATEGY 1: zebra\nSTRATEGY 1: ant",
    "STRATEGY 1: STRATEGY 2: left",
    "STRATEGY 1:",
    "STRATEGY 1: \n\n",
    "STRATEGY 1:\nSTRATEGY 2:\nSTRATEGY 3: c",
    "STRATEGY 1: s1\nSTRATEGY 2: s2\nSTRATEGY 3: s3\nSTRATEGY 4: s4",
    "STRATEGY 4: s4\nSTRATEGY 3: s3\nSTRATEGY 2: s2\nSTRATEGY 1: s1",
    "**STRATEGY 1:** use induction\n**STRATEGY 2:** count",
    "1. STRATEGY 1: a\n2. STRATEGY 2: b",
    "STRATEGY one: a\nSTRATEGY 2: b",
    "STRATEGY 1 - algebra\nSTRATEGY 2 - geometry",
    "1. induct\n2) count",
    "1. induct\n   on n\n2. count\n   twice",
    "Here are some.\n2. second\n1. first",
    "1.induct\n2.count\n3.guess\n4.check",
    "1. \n2. count",
    "3.14 is pi\nand that is all of it",
    "short\nuse a generating function",
    "- use a generating function\n- think\n- take cases by parity of n\n- bound it from above",
    "exactly10!\nexactly 11!",
    "left",
    "  \n",
    "",
    "  one blank on either side of this line  ",
    "STRATEGY 10: ten\nSTRATEGY 9: nine",
    "The STRATEGY 1: idea is to compare STRATEGY and luck. STRATEGY 2: count",
]

_INTEGERS = [
    ("\\boxed{5}", "5"),
    ("\\boxed{6}", "5"),
    ("so \\boxed{4} and then \\boxed{5}", "5"),
    ("\\boxed{5} and then \\boxed{4}", "5"),
    ("no box, 5", "5"),
    ("\\boxed{5", "5"),
    ("\\boxed{}", "5"),
    ("", "5"),
    ("\\boxed{5.0}", "5"),
    ("\\boxed{5.}", "5"),
    ("\\boxed{05}", "5"),
    ("\\boxed{+5}", "5"),
    ("\\boxed{-5}", "5"),
    ("\\boxed{1,000}", "1000"),
    ("\\boxed{1{,}000}", "1000"),
    ("\\boxed{1\\,000}", "1000"),
    ("\\boxed{1 000}", "1000"),
    ("\\boxed{$5$}", "5"),
    ("\\boxed{5 \\text{ cm}}", "5"),
    ("\\boxed{5\\text{cm}}", "5"),
    ("\\boxed{5 cm}", "5"),
    ("\\boxed{5^\\circ}", "5"),
    ("\\boxed{5\\%}", "5"),
    ("\\boxed{\\$5}", "5"),
    ("\\boxed{x=5}", "5"),
    ("\\boxed{x = 5}", "5"),
    ("\\boxed{m+n=5}", "5"),
    ("\\boxed{\\text{5}}", "5"),
    ("\\boxed{\\mathrm{5}}", "5"),
    ("\\boxed{2+3}", "5"),
    ("\\boxed{10/2}", "5"),
    ("\\boxed{\\frac{10}{2}}", "5"),
    ("\\boxed{\\sqrt{25}}", "5"),
    ("\\boxed{2^5+2}", "34"),
    ("\\boxed{17+17}", "34"),
    ("\\boxed{68/2}", "34"),
    ("\\boxed{\\sqrt{1156}}", "34"),
    ("\\boxed{m+n=34}", "34"),
    ("\\boxed{34 \\text{ square units}}", "34"),
    ("\\boxed{3.4e1}", "34"),
    ("\\boxed{thirty-four}", "34"),
    ("\\boxed{5}", "\\boxed{5}"),
    ("\\boxed{5}", "$5$"),
    ("<think>\\boxed{4}</think>\\boxed{5}", "5"),
    ("<think>\\boxed{5}</think>so it is", "5"),
    ("a</think>\\boxed{4}</think>\\boxed{5}", "5"),
    ("\\fbox{5}", "5"),
    ("\\boxed 5", "5"),
    ("\\boxed{\\boxed{5}}", "5"),
    ("<|begin_of_box|>5<|end_of_box|>", "5"),
    ("\\boxed{4} <|begin_of_box|>5<|end_of_box|>", "5"),
    ("\\boxed{5\n}", "5"),
    ("\\boxed{(5)}", "5"),
    ("\\boxed{5 or 6}", "5"),
    ("\\boxed{\\{5\\}}", "5"),
    ("\\boxed{0}", "0"),
    ("\\boxed{-0}", "0"),
    ("\\boxed{\u0665}", "5"),
    ("\\boxed{1000000}", "1 million"),
    ("\\boxed{5!}", "120"),
    ("\\boxed{9^{9^{9^9}}}", "5"),
    ("\\boxed{2^100}", "5"),
]

_EXPRESSIONS = [
    ("\\boxed{\\frac{1}{2}}", "1/2"),
    ("\\boxed{1/2}", "\\frac{1}{2}"),
    ("\\boxed{\\frac12}", "\\frac{1}{2}"),
    ("\\boxed{\\dfrac{1}{2}}", "\\frac{1}{2}"),
    ("\\boxed{\\tfrac{1}{2}}", "\\frac{1}{2}"),
    ("\\boxed{0.5}", "\\frac{1}{2}"),
    ("\\boxed{.5}", "0.5"),
    ("\\boxed{\\frac{2}{4}}", "\\frac{1}{2}"),
    ("\\boxed{2/4}", "1/2"),
    ("\\boxed{0.25}", "\\frac{1}{4}"),
    ("\\boxed{\\frac{-1}{2}}", "-\\frac{1}{2}"),
    ("\\boxed{1 1/2}", "3/2"),
    ("\\boxed{1\\frac{1}{2}}", "\\frac{3}{2}"),
    ("\\boxed{\\sqrt{2}}", "\\sqrt2"),
    ("\\boxed{\\sqrt{8}}", "2\\sqrt{2}"),
    ("\\boxed{2\\sqrt2}", "2\\sqrt{2}"),
    ("\\boxed{\\frac{1}{\\sqrt{2}}}", "\\frac{\\sqrt{2}}{2}"),
    ("\\boxed{\\pi}", "\\pi"),
    ("\\boxed{2\\pi}", "\\pi\\cdot 2"),
    ("\\boxed{2 \\times 3 \\pi}", "6\\pi"),
    ("\\boxed{x+1}", "1+x"),
    ("\\boxed{(x+1)^2}", "x^2+2x+1"),
    ("\\boxed{x^{2}}", "x^2"),
    ("\\boxed{x^2}", "x^{2}"),
    ("\\boxed{(1,2)}", "(1, 2)"),
    ("\\boxed{(1, 2)}", "(2, 1)"),
    ("\\boxed{[1,2)}", "(1,2)"),
    ("\\boxed{1,2}", "1, 2"),
    ("\\boxed{1 \\text{ and } 2}", "1,2"),
    ("\\boxed{\\left(1,\\frac{1}{2}\\right)}", "(1,1/2)"),
    ("\\boxed{\\infty}", "\\infty"),
    ("\\boxed{A}", "A"),
    ("\\boxed{a}", "A"),
    ("\\boxed{\\text{A}}", "A"),
    ("\\boxed{\\text{Yes}}", "yes"),
    ("\\boxed{a+b+c+d}", "d+c+b+a"),
    ("\\boxed{a+b}", "b+a"),
    ("\\boxed{3 \\text{ or } 4}", "3,4"),
    ("\\boxed{\\begin{pmatrix}1\\\\2\\end{pmatrix}}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"),
    ("\\boxed{30 degrees}", "30"),
    ("\\boxed{12 inches}", "12"),
    ("\\boxed{1.50}", "1.5"),
    ("\\boxed{3.14159}", "\\pi"),
    ("\\boxed{50\\%}", "0.5"),
    ("\\boxed{1e-3}", "0.001"),
    ("\\boxed{\\frac{1}{3}}", "0.333"),
    ("\\boxed{-\\frac{3}{4}}", "-3/4"),
    ("\\boxed{\\frac{3}{4}x}", "\\frac{3x}{4}"),
    ("\\boxed{\\text{}}", "5"),
    ("\\boxed{\\frac}", "1/2"),
    ("\\boxed{\\sqrt}", "2"),
    ("\\boxed{1/0}", "1/2"),
    ("\\boxed{__import__('os').getpid()}", "1.5"),
]

MATH = [*_INTEGERS, *_EXPRESSIONS]

SUM = [{"input": f"{a} {b}\n", "output": f"{a + b}\n"} for a, b in ((1, 2), (10, -3))]
LINES = [{"input": "2\na\nb\n", "output": "a\nb\n"}]
GAP = [{"input": "2\n\nb\n", "output": "b\n"}]
FLOATS = [{"input": "", "output": "0.5 2\n"}]
WORDS = [{"input": "", "output": "YES\n"}]
SILENT = [{"input": "", "output": ""}]


def _calls(name: str, *cases: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "input": given,
            "output": wanted,
            "testtype": "functional",
            "metadata": {"func_name": name},
        }
        for given, wanted in cases
    ]


def _fenced(code: str, language: str = "python") -> str:
    return f"Here it is.\n```{language}\n{code}\n```\n"


_ADD = "a, b = map(int, input().split())\nprint(a + b)"
_ADDED = _calls("add", ("1\n2", "3"), ("-1\n5", "4"))

PROGRAMS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "script": (_fenced(_ADD), SUM),
    "wrong": (_fenced("print(3)"), SUM),
    "no fence": (_ADD, SUM),
    "no newline before the closing fence": (f"```python\n{_ADD}```", SUM),
    "fence never closed": (f"```python\n{_ADD}\n", SUM),
    "other language": (_fenced(_ADD, "py3"), SUM),
    "no language": (_fenced(_ADD, ""), SUM),
    "language with a sign": (_fenced(_ADD, "c++"), SUM),
    "language after a blank": (_fenced(_ADD, " python"), SUM),
    "language and a blank": (_fenced(_ADD, "python "), SUM),
    "last of two": (_fenced("print(3)") + _fenced(_ADD), SUM),
    "sample output in the last fence": (_fenced(_ADD) + _fenced("3", ""), SUM),
    "indented fence": ("  ```python\n  " + _ADD.replace("\n", "\n  ") + "\n  ```", SUM),
    "main guard": (
        _fenced(
            "def main():\n    "
            + _ADD.replace("\n", "\n    ")
            + "\nif __name__ == '__main__':\n    main()"
        ),
        SUM,
    ),
    "main guard not last": (
        _fenced(
            "def main():\n    "
            + _ADD.replace("\n", "\n    ")
            + '\nif __name__ == "__main__":\n    main()\nx = 1'
        ),
        SUM,
    ),
    "main called": (_fenced("def main():\n    " + _ADD.replace("\n", "\n    ") + "\nmain()"), SUM),
    "global variable": (
        _fenced(
            "total = 0\ndef add(x):\n    global total\n    total += x\nfor x in input().split():\n    add(int(x))\nprint(total)"
        ),
        SUM,
    ),
    "recursion": (
        _fenced(
            "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\na, b = map(int, input().split())\nprint(f(abs(a)) + b)"
        ),
        SUM,
    ),
    "class at the top": (
        _fenced(
            "class Pair:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\na, b = map(int, input().split())\np = Pair(a, b)\nprint(p.a + p.b)"
        ),
        SUM,
    ),
    "stdin read": (_fenced("import sys\nprint(sum(map(int, sys.stdin.read().split())))"), SUM),
    "stdin readline": (
        _fenced("import sys\nprint(sum(map(int, sys.stdin.readline().split())))"),
        SUM,
    ),
    "input is readline": (
        _fenced(
            "import sys\ninput = sys.stdin.readline\na, b = map(int, input().split())\nprint(a + b)"
        ),
        SUM,
    ),
    "stdin buffer": (
        _fenced("import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))"),
        SUM,
    ),
    "open zero": (_fenced("print(sum(map(int, open(0).read().split())))"), SUM),
    "open a file": (_fenced("print(sum(map(int, open('input.txt').read().split())))"), SUM),
    "stdin lines": (
        _fenced("import sys\nfor line in sys.stdin:\n    print(sum(map(int, line.split())))"),
        SUM,
    ),
    "stdout write": (
        _fenced("import sys\na, b = map(int, input().split())\nsys.stdout.write(str(a + b))"),
        SUM,
    ),
    "stdout buffer": (
        _fenced(
            "import sys\na, b = map(int, input().split())\nsys.stdout.buffer.write(str(a + b).encode())"
        ),
        SUM,
    ),
    "customary import": (_fenced("print(gcd(4, 6) + 1 - 3 + sum(map(int, input().split())))"), SUM),
    "numpy": (
        _fenced(
            "import numpy as np\nprint(int(np.sum(np.array(list(map(int, input().split()))))))"
        ),
        SUM,
    ),
    "exit": (_fenced(_ADD + "\nexit()"), SUM),
    "exit with a status": (_fenced(_ADD + "\nimport sys\nsys.exit(1)"), SUM),
    "quit": (_fenced(_ADD + "\nquit()"), SUM),
    "error after the answer": (_fenced(_ADD + "\nraise ValueError"), SUM),
    "syntax error": (_fenced("print(1"), SUM),
    "too slow": (_fenced("while True:\n    pass"), SUM),
    "four seconds": (_fenced("import time\ntime.sleep(4)\n" + _ADD), SUM),
    "two seconds": (_fenced("import time\ntime.sleep(2)\n" + _ADD), SUM),
    "five gibibytes": (_fenced("x = bytearray(5 << 30)\ndel x\n" + _ADD), SUM),
    "deep recursion": (
        _fenced(
            "import sys\nsys.setrecursionlimit(10**6)\ndef f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nf(20000)\n"
            + _ADD
        ),
        SUM,
    ),
    "recursion beyond the limit": (
        _fenced("def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nf(5000)\n" + _ADD),
        SUM,
    ),
    "two lines": (_fenced("for _ in range(int(input())):\n    print(input())"), LINES),
    "blanks around lines": (_fenced("print('  a ')\nprint('b\\n\\n')"), LINES),
    "one line too many": (_fenced("print('a')\nprint('b')\nprint('c')"), LINES),
    "blank line in the input": (_fenced("n = input()\nx = input()\nprint(input())"), GAP),
    "floats": (_fenced("print('0.50', 2.0)"), FLOATS),
    "nearly": (_fenced("print(0.5000001, 2)"), FLOATS),
    "case": (_fenced("print('Yes')"), WORDS),
    "more blanks": (_fenced("print('0.5  2')"), FLOATS),
    "nothing wanted": (_fenced("pass"), SILENT),
    "nothing written": (_fenced("pass"), SUM),
    "walrus at the top": (_fenced("print((n := 1) and sum(map(int, input().split())))"), SUM),
    "future import": (_fenced("from __future__ import annotations\n" + _ADD), SUM),
    "star import": (_fenced("from math import *\n" + _ADD), SUM),
    "import in a block": (
        _fenced(
            "if True:\n    import math\nprint(int(math.sqrt(4)) - 2 + sum(map(int, input().split())))"
        ),
        SUM,
    ),
    "comprehension over a local": (
        _fenced("k = 1\nxs = list(map(int, input().split()))\nprint(sum([x * k for x in xs]))"),
        SUM,
    ),
    "exec sees the names": (
        _fenced("a, b = map(int, input().split())\nexec('c = a + b')\nprint(c)"),
        SUM,
    ),
    "globals": (_fenced("a, b = map(int, input().split())\nprint(globals()['a'] + b)"), SUM),
    "return at the top": (_fenced(_ADD + "\nreturn"), SUM),
    "class in a script": (_fenced("class Solution:\n    pass\n" + _ADD), SUM),
    "class in a comment of a script": (_fenced("# class Solution\n" + _ADD), SUM),
    "class in a text of a script": (_fenced("x = 'class Solution'\n" + _ADD), SUM),
    "imports alone": (_fenced("import math"), SILENT),
    "numpy without an import": (
        _fenced("print(int(np.sum(list(map(int, input().split())))))"),
        SUM,
    ),
    "word and number": (_fenced("print('a 1.0')"), [{"input": "", "output": "a 1\n"}]),
    "lines as a list": (_fenced(_ADD), [{"input": "1 2\n\n", "output": "3"}]),
    "more input than read": (_fenced(_ADD), [{"input": "1 2\n5\n", "output": "3"}]),
    "end of the input": (_fenced("input()\ninput()"), SUM),
    "main guard with else": (
        _fenced(
            "x = 1\nif __name__ == '__main__':\n    "
            + _ADD.replace("\n", "\n    ")
            + "\nelse:\n    print(9)"
        ),
        SUM,
    ),
    "main guard beside more": (
        _fenced(
            "import sys\nif __name__ == '__main__' and sys:\n    " + _ADD.replace("\n", "\n    ")
        ),
        SUM,
    ),
    "function": (_fenced("def add(a, b):\n    return a + b"), _ADDED),
    "function wrong": (_fenced("def add(a, b):\n    return a"), _ADDED),
    "method": (
        _fenced("class Solution:\n    def add(self, a: int, b: int) -> int:\n        return a + b"),
        _ADDED,
    ),
    "method typed": (
        _fenced(
            "class Solution:\n    def add(self, a: Optional[int], b: List[int]) -> int:\n        return a + b"
        ),
        _ADDED,
    ),
    "function beside an empty class": (
        _fenced("class Solution:\n    pass\ndef add(a, b):\n    return a + b"),
        _ADDED,
    ),
    "class named in a comment": (
        _fenced("# class Solution\ndef add(a, b):\n    return a + b"),
        _ADDED,
    ),
    "other class": (
        _fenced("class Solver:\n    def add(self, a, b):\n        return a + b"),
        _ADDED,
    ),
    "lambda": (_fenced("add = lambda a, b: a + b"), _ADDED),
    "needs arguments to be made": (
        _fenced(
            "class Solution:\n    def __init__(self, n):\n        pass\n    def add(self, a, b):\n        return a + b"
        ),
        _ADDED,
    ),
    "method of an imported name": (
        _fenced("class Solution:\n    def search(self, a, b):\n        return a + b"),
        _calls("search", ("1\n2", "3")),
    ),
    "script for a function": (_fenced(_ADD), _ADDED),
    "function and a print": (_fenced("def add(a, b):\n    print('x')\n    return a + b"), _ADDED),
    "true is one": (_fenced("def f(x):\n    return 1"), _calls("f", ("1", "true"))),
    "float is int": (_fenced("def f(x):\n    return 2.0"), _calls("f", ("1", "2"))),
    "tuple": (_fenced("def f(x):\n    return (1, 2)"), _calls("f", ("1", "[1, 2]"))),
    "list of one": (_fenced("def f(x):\n    return 1"), _calls("f", ("1", "[1]"))),
    "text": (_fenced("def f(x):\n    return 'a'"), _calls("f", ("1", '"a"'))),
    "none": (_fenced("def f(x):\n    pass"), _calls("f", ("1", "null"))),
    "nearly equal": (_fenced("def f(x):\n    return 0.1 + 0.2"), _calls("f", ("1", "0.3"))),
    "function raises": (_fenced("def f(x):\n    raise KeyError"), _calls("f", ("1", "1"))),
    "function exits": (_fenced("def f(x):\n    exit()"), _calls("f", ("1", "1"))),
    "function too slow": (
        _fenced("def f(x):\n    while True:\n        pass"),
        _calls("f", ("1", "1")),
    ),
    "main guard beside a function": (
        _fenced("def add(a, b):\n    return a + b\nif __name__ == '__main__':\n    print(input())"),
        _ADDED,
    ),
    "memory between calls": (
        _fenced("seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)"),
        _calls("f", ("1", "1"), ("1", "1")),
    ),
    "argument changed": (
        _fenced("def f(xs):\n    xs.append(1)\n    return xs"),
        _calls("f", ("[]", "[1]")),
    ),
    "empty for gcd": (_fenced("pass"), _calls("gcd", ("4\n6", "2"))),
}

_Q = [("user", "What is 1 + 1?")]
CONVERSATIONS: list[list[tuple[str, str]]] = [
    _Q,
    [("user", "  blanks around \n")],
    [*_Q, ("assistant", "two"), ("user", "Judge it.")],
    [*_Q, ("assistant", "  two\n"), ("assistant", "\\boxed{Incorrect}"), ("user", "Again.")],
    [*_Q, ("assistant", ""), ("user", "Judge it.")],
    [
        *_Q,
        ("assistant", "a"),
        ("assistant", "b"),
        ("assistant", "c"),
        ("assistant", "d"),
        ("user", "e"),
    ],
]

COMPLETIONS = [
    "two<|im_end|>",
    "  two \n<|im_end|>",
    "two",
    "two<|endoftext|>",
    "<|im_end|>",
    "",
    "work</think>two<|im_end|>",
    "<think>work</think>\n\ntwo<|im_end|>",
    "<think>a</think>b</think>c<|im_end|>",
    "<think>never closed<|im_end|>",
    "work</think><|im_end|>",
    "<tool_call>{}</tool_call>two<|im_end|>",
    "one<tool_call>never closed<|im_end|>",
    "two<|im_end|>\n",
]


def _template(text: str) -> dict[str, Any]:
    return {"template": text, "description": "", "required_variables": []}


def _sections(answer: str, names: dict[str, str]) -> dict[str, Any]:
    """A prompt file in the layout of the paper's code, with texts of ours."""
    solve = _template(f"Work on this: {{problem}}\nAnswer in {answer}.")
    judge = _template("Judge it: \\boxed{Correct} or \\boxed{Incorrect}.")
    again = _template(f"Again, in {answer}.")
    alone = _template(
        "Check {problem} with\n{solution}\n\\boxed{{Correct}} or \\boxed{{Incorrect}}?"
    )
    told = _template(f"You were told: {{feedback}}\nAgain in {answer}.")
    return {
        names["single"]: {"generator_initial": _template(f"Alone: {{problem}} in {answer}")},
        names["eval_opt"]: {
            "generator_initial": solve,
            "evaluator_critique": judge,
            "generator_refinement": again,
        },
        names["eval_opt_v2"]: {
            "generator_initial": solve,
            "evaluator_critique": alone,
            "generator_refinement": told,
        },
        names["voting"]: {
            "generator": solve,
            "aggregator": _template("Of {problem} choose:{solutions}\nin \\boxed{{N}}"),
        },
        names["orch_workers"]: {
            "orchestrator_propose": _template(
                "At most {max_subtasks} ways for {problem}, {max_subtasks}!"
            ),
            "worker_full_solve": _template("Solve {problem} by {strategy}."),
            "orchestrator_compare": _template(
                "Compare for {problem}:{solutions}\nEnd with {{it}}."
            ),
        },
        "metadata": {"version": "test"},
    }


PROMPT_FILES = {
    "math": _sections(
        "\\boxed{{}}",
        {
            "single": "multi_agent_math_prompts",
            "eval_opt": "evaluator_optimizer_prompts",
            "eval_opt_v2": "evaluator_optimizer_v2_prompts",
            "voting": "voting_prompts",
            "orch_workers": "orchestrator_workers_prompts",
        },
    ),
    "code": _sections(
        "```python",
        {
            "single": "deepcoder_single_agent_prompts",
            "eval_opt": "deepcoder_evaluator_optimizer_prompts",
            "eval_opt_v2": "deepcoder_evaluator_optimizer_v2_prompts",
            "voting": "deepcoder_voting_prompts",
            "orch_workers": "deepcoder_orchestrator_workers_prompts",
        },
    ),
}
