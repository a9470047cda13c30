"""Count what packs a text: `python benchmarks/text.py [FOLDER ...]`, per 1 000 lines.

A token of code is a name, an operator, a number or a string. Comments, docstrings and blank lines
hold none, so that no layout changes their number. Scripts count too, without uPlot and brackets.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("dynamics_cli", "experiments", "tests", "benchmarks", "docs")
CODE = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
WIDTH = 100
SCRIPT = re.compile(
    r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*`
    | (?<=[(,=:?&|]) \s* /(?:\\.|\[[^\]\n]*\]|[^/\\\n])+/\w* # a regular expression
    | \d[\w.]* | [\w$]+
    | => | \.\.\. | \?\?=? | \?\. | \*\* | >>>?=? | <<=? | && | \|\| | [-+]{2}
    | [-+*/%&|^=!<>]=?=? | [?~]
    """,
    re.VERBOSE | re.DOTALL,
)
"""A comment of JavaScript, or a token: a word, a number, a string, an operator, no bracket."""
PER_THOUSAND = ("tuples", "conditionals", "comprehensions", "over 100", "comments")


def docstrings(tree: ast.Module) -> set[tuple[int, int]]:
    """Return where strings that are statements begin: line and column."""
    return {
        (node.value.lineno, node.value.col_offset)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def is_pair_of_tuples(node: ast.AST) -> bool:
    """Return whether a statement is `a, b = x, y`; `a, b = b, a` swaps, and is not."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Tuple):
        return False
    names = {ast.unparse(item) for item in target.elts}
    return names != {ast.unparse(item) for item in node.value.elts}


def count_script(source: str) -> Counter[str]:
    """Return the counts of a file of JavaScript."""
    counts: Counter[str] = Counter(files=1, lines=len(source.splitlines()))
    for found in SCRIPT.finditer(source):
        counts["comments" if found["comment"] else "tokens"] += 1
    return counts


def count(path: Path) -> Counter[str]:
    """Return the counts of a file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".js":
        return count_script(source)
    tree = ast.parse(source)
    prose = docstrings(tree)
    counts: Counter[str] = Counter(files=1)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            counts["comments"] += 1
            counts["fmt"] += "fmt:" in token.string
        elif token.type in CODE and token.start not in prose:
            counts["tokens"] += 1
    counts["lines"] = len(source.splitlines())
    counts["over 100"] = sum(len(line) > WIDTH for line in source.splitlines())
    for node in ast.walk(tree):
        counts["tuples"] += is_pair_of_tuples(node)
        counts["conditionals"] += isinstance(node, ast.IfExp)
        counts["comprehensions"] += isinstance(
            node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
        )
    return counts


def main(folders: list[str]) -> None:
    """Print a row for each folder."""
    columns = ["tokens", "files", "lines", *PER_THOUSAND, "fmt"]
    print(f"{'':30}", *(f"{column:>14}" for column in columns))
    for folder in folders or ROOMS:
        place = ROOT / folder
        files = [place] if place.is_file() else sorted(place.rglob("*.[pj][ys]"))
        left_out = re.compile(r"__pycache__|\.min\.js$")
        files = [file for file in files if not left_out.search(str(file))]
        counts: Counter[str] = Counter(lines=1)
        for file in files:
            counts += count(file)
        cells = [
            f"{1000 * counts[name] / counts['lines']:.1f}" if name in PER_THOUSAND else counts[name]
            for name in columns
        ]
        print(f"{folder:30}", *(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main(sys.argv[1:])
