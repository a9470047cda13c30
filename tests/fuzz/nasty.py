"""Constructs that readers of configs stumble over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

WHOLE = """\
name: toy
dataset: {kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], append_bias: true}
architecture: {kind: two_layer, width: 8}
initialization: {kind: balanced, scale: 0.1}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.01, iterations: 30}
"""
"""A config that is well."""

SCALARS = [
    "1e999999", "-1e999999", "1e-999999", "1e308", "5e-324", "1" * 100, "9" * 5000, "-" + "9" * 100_000,
    "0x" + "f" * 100_000, "0o" + "7" * 50_000, "0." + "3" * 100_000, "1" * 100_000 + ".5", "0x", "0b101", "012",
    "1_000", "1:30", "190:20:30.15", "9223372036854775807", "9223372036854775808", "-9223372036854775809", ".inf",
    "-.INF", ".nan", "NaN", "Infinity", "1e", "+.e3", "+", "-", ".", "..", "~", "null", "true", "yes", "on", "=",
    "<<", "2022-01-31", "''", '""', "[]", "{}", "[[]]", '"\\0"', '"\\ud800"', '"\\udc80x"', '"\\U0001F600"',
    '"\\UFFFFFFFF"', '"\\x"', '"\\N{DASH}"', "'\u2028'", "\u0661\u0662", "\uff11", "\U0001f600", "a" * 10_000,
    "'" + "b " * 5_000 + "'", "../../etc/passwd", "/dev/zero", "/dev/stdin", "/proc/self/environ", "C:\\x",
    "\\\\host\\x", "x/../../y", "a\\nb", "$(touch pwned)", "`touch pwned`", "; touch pwned", "{{7*7}}", "%s%n", "*",
    "&a", "*a", "!!python/object/apply:os.system ['touch pwned']", "!!python/name:os.system",
    "!!python/object/new:type {args: [a, [], {}]}", "!!binary aGVsbG8=", "!!timestamp 2020-01-01", "!!set {a, b}",
    "!!omap [a: 1]", "!!int x", "!!float 1e", "!!bool 1", "!!str 1", "!<tag:yaml.org,2002:int> 3", "!local 3", "!",
    "!!null x", "!!seq {a: 1}", "!!map [1]", "? 1", "- 1", "|\n  x", ">-\n  x", "# x", "@x", "%x",
]  # fmt: skip
"""Written where a value belongs."""


def bomb(levels: int, fan: int) -> str:
    """Return a few lines that stand for `fan ** levels` values."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * fan)}]" for i in range(1, levels + 1)]
    return "\n".join(lines) + "\n"


def _nest(opening: str, closing: str, depth: int) -> str:
    return "a: " + opening * depth + "1" + closing * depth + "\n"


def _blocks(depth: int) -> str:
    return "".join(" " * i + "a:\n" for i in range(depth)) + " " * depth + "1\n"


def _large(unit: str, size: int, start: str = "a: ", end: str = "\n") -> str:
    return start + unit * (size // len(unit)) + end


_MIB = 2**20
DOCUMENTS: dict[str, Callable[[], str]] = {
    "nothing": str,
    "a whole config": lambda: WHOLE,
    "newlines": lambda: "\n\n\n",
    "a comment": lambda: "# nothing",
    "two documents": lambda: WHOLE + "---\n" + WHOLE,
    "an end": lambda: WHOLE + "...\nrest",
    "directives": lambda: "%YAML 1.1\n%TAG ! tag:x,2020:\n--- !y\n" + WHOLE,
    "an unknown directive": lambda: "%X y\n---\n" + WHOLE,
    "alias bomb": lambda: bomb(9, 10),
    "alias bomb in the config": lambda: WHOLE + bomb(30, 2),
    "alias of aliases": lambda: bomb(5000, 1),
    "alias of itself": lambda: "a: &a [*a, *a]\nb: &b {c: *b}\n",
    "an undefined alias": lambda: "a: *b\n",
    "merge keys": lambda: "x: &x {kind: gd}\noptimizer: {<<: *x, lr: 1}\n" + WHOLE,
    "merge bomb": lambda: (
        "a0: &a0 {k: v}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40))
    ),
    "duplicate keys": lambda: "a: 1\n" * 10_000,
    "duplicate sections": lambda: WHOLE + WHOLE,
    "duplicate keys by escapes": lambda: '{"a": 1, "\\u0061": 2, "loss": {}, "l\\x6fss": {}}',
    "unknown keys": lambda: "".join(f"key{i}: {i}\n" for i in range(20_000)),
    "unknown keys of a kind": lambda: WHOLE.replace(
        "width: 8", "width: 8, " + ", ".join(f"widht{i}: 1" for i in range(20_000))
    ),
    "keys that are no texts": lambda: "1: a\n? [a]\n: b\n? {c: d}\n: e\n~: f\ntrue: g\n? |\n  h\n: i\n",
    "many keys that are no texts": lambda: "".join(f"{i}: a\n" for i in range(20_000)),
    "a long key": lambda: "a" * 200_000 + ": 1\n",
    "a long key, quoted": lambda: '"' + "k" * 1000 + '": 1\n' + '? "' + "k" * 300_000 + '"\n: 1\n',
    "keys with half characters": lambda: WHOLE + '"\\ud800": 1\n',
    "a key with null": lambda: WHOLE.replace("width: 8", '"wid\\0th": 8'),
    "a long kind": lambda: WHOLE.replace("two_layer", "two_layer" * 20_000),
    "a kind that is a list": lambda: WHOLE.replace("two_layer", "[two_layer]"),
    "bad values of a list": lambda: WHOLE.replace("[[-0.5], [2.0]]", "[" + ", ".join(["[a]"] * 15_000) + "]"),
    "ragged lists": lambda: WHOLE.replace(
        "[[-0.5], [2.0]]", "[" + ", ".join("[" + "1," * (i % 7) + "]" for i in range(9_000)) + "]"
    ),
    "a range of classes": lambda: (
        WHOLE.replace("two_layer, width: 8", "fully_connected, widths: [3], outputs: 9000000000000000000, bias: false")
        .replace("kind: mse", "kind: cross_entropy")
        .replace("-1.0, 1.0", "8999999999999999488, 0.5")
    ),
    "flow sequences": partial(_nest, "[", "]", 500_000),
    "flow mappings": partial(_nest, "{a: ", "}", 200_000),
    "unclosed": lambda: "[" * 1_000_000,
    "unopened": lambda: "]" * 1_000_000,
    "nested blocks": partial(_blocks, 1500),
    "nested blocks of sequences": lambda: "- " * 100_000 + "1",
    "nested keys": lambda: "? " * 100_000 + "1",
    "nested in the config": lambda: WHOLE.replace("[[-0.5], [2.0]]", "[" * 300 + "]" * 300),
    "tabs": lambda: WHOLE.replace("\n", "\n\t"),
    "tabs inside": lambda: WHOLE.replace(" ", "\t"),
    "JSON with tabs": lambda: '{\n\t"name":\t"a"\n}',
    "deep JSON with tabs": lambda: "{\t" + '"a":[' * 100_000,
    "null characters": lambda: WHOLE.replace("toy", "t\0y"),
    "Windows lines": lambda: WHOLE.replace("\n", "\r\n"),
    "old Macintosh lines": lambda: WHOLE.replace("\n", "\r"),
    "other line ends": lambda: WHOLE.replace("\n", "\u2028") + WHOLE.replace("\n", "\x85"),
    "two marks": lambda: "\ufeff\ufeff" + WHOLE,
    "a mark inside": lambda: WHOLE.replace("loss", "\ufeffloss"),
    "control characters": lambda: "".join(map(chr, range(1, 32))) + WHOLE,
    "half a text": lambda: 'a: "b\n' + WHOLE,
    "a text": lambda: "toy",
    "a list": lambda: "[1, 2]",
    "extends itself": lambda: "extends: config.yaml\n" + WHOLE,
    "extends a device": lambda: "extends: /dev/zero\n" + WHOLE,
    "extends a directory": lambda: "extends: /\n" + WHOLE,
    "extends a long name": lambda: "extends: " + "x/" * 20_000 + "\n" + WHOLE,
    "extends null": lambda: 'extends: "\\0"\n' + WHOLE,
    "extends half a character": lambda: 'extends: "\\ud800"\n' + WHOLE,
    "extends a list": lambda: "extends: [a]\n" + WHOLE,
    "data of a long name": lambda: WHOLE.replace(
        "points, x: [[-0.5], [2.0]], y: [-1.0, 1.0]", "file, path: " + "p" * 5000
    ),
    "data in a device": lambda: WHOLE.replace("points, x: [[-0.5], [2.0]], y: [-1.0, 1.0]", "file, path: /dev/zero"),
    "weights below a file": lambda: WHOLE.replace("balanced, scale: 0.1", "file, path: /etc/passwd/x.npz"),
}
"""Name -> makes the text of a config."""

BYTES: dict[str, Callable[[], bytes]] = {
    "UTF-16": lambda: WHOLE.encode("utf-16"),
    "UTF-16 without a mark": lambda: WHOLE.encode("utf-16-le"),
    "UTF-32": lambda: WHOLE.encode("utf-32"),
    "UTF-8 with a mark": lambda: WHOLE.encode("utf-8-sig"),
    "Latin 1": lambda: WHOLE.replace("toy", "t\xf6y").encode("latin-1"),
    "bad UTF-8": lambda: WHOLE.encode().replace(b"toy", b"t\xffy"),
    "half a character at the end": lambda: WHOLE.encode() + b"# \xf0\x9f",
    "half characters": lambda: WHOLE.encode().replace(b"toy", b"\xed\xa0\x80"),
    "overlong": lambda: WHOLE.encode().replace(b"toy", b"\xc0\xaf"),
    "zeros": lambda: bytes(3_000_000),
    "all bytes": lambda: bytes(range(256)) * 100,
    "2 MiB and a byte": lambda: b"a: " + b"x" * (2 * _MIB - 2),
}
"""Name -> makes the bytes of a config."""

SPECIAL = [
    "directory", "fifo", "zero", "null", "full", "socket", "link to zero", "dangling link", "link to itself",
    "sparse 100 MiB", "sparse 1 TiB", "missing", "below a file", "long name", "long path", "name with null",
    "name with half a character", "empty name",
]  # fmt: skip
"""Things that are no ordinary file with a config in it, given as the config."""

_UNITS = (
    ("numbers", "1,", "a: [", "]\n"), ("numbers in rows", "  - 1\n", "a:\n", ""), ("rows", "[1.5],", "a: [", "]\n"),
    ("empty lists", "[],", "a: [", "]\n"), ("empty values", ",", "a: [1", "]\n"),
    ("mappings", "{a: 1},", "a: [", "]\n"), ("words", "x ", "a: ", "\n"), ("words in lines", "x\n  ", "a: ", "\n"),
    ("a plain text", "x", "a: ", "\n"), ("a quoted text", "x", "a: '", "'\n"),
    ("a quoted text in lines", "x\n\n  ", "a: '", "'\n"), ("escapes", "\\x41", 'a: "', '"\n'),
    ("an unfinished text", "\\n", 'a: "', ""), ("a comment", "x", "#", "\n"), ("comments", "#\n", "", "a: 1"),
    ("newlines", "\n", "", "a: 1"), ("spaces", " ", "", "a: 1"), ("carriage returns", "\r", "", "a: 1"),
    ("a literal text", "  x\n", "a: |\n", ""), ("a folded text", "  x\n\n", "a: >\n", ""),
    ("anchors", "&a 1, ", "a: [", "]\n"), ("tags", "!!int 1, ", "a: [", "]\n"), ("a tag", "x", "a: !", " 1\n"),
    ("a tag of escapes", "%41", "a: !<", "> 1\n"), ("an anchor", "x", "a: &", " 1\n"),
    ("an alias", "x", "a: *", "\n"), ("a directive", "x", "%", "\n---\na: 1"), ("question marks", "? ", "", "1"),
    ("colons", ":", "a: ", "\n"), ("hyphens", "-", "a: ", "\n"), ("braces", "{}", "a: [", "]"),
    ("emoji", "\U0001f600", "a: ", "\n"), ("digits", "7", "a: ", "\n"), ("hexadecimal digits", "f", "a: 0x", "\n"),
    ("a fraction", "3", "a: 0.", "\n"), ("an exponent", "9", "a: 1e", "\n"),
)  # fmt: skip
LARGE: dict[str, Callable[[], str]] = {
    f"large: {name}": partial(_large, unit, 2 * _MIB - 100, start, end) for name, unit, start, end in _UNITS
}
"""Name -> makes a text of nearly the size that is read at most; each takes a good part of the time allowed."""

SLOW = (
    "alias of aliases", "unknown keys", "unknown keys of a kind", "duplicate keys", "many keys that are no texts",
    "bad values of a list", "ragged lists", "alias bomb", "alias bomb in the config", "deep JSON with tabs",
    "flow sequences", "flow mappings",
)  # fmt: skip
"""Documents that take longer than others."""
