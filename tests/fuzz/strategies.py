"""What hypothesis draws: bytes that were well-formed, and configs grown from their schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import yaml
from hypothesis import strategies as st

from dynamics_cli.config import json_schema

SCALARS = [
    "1e999999", "-1e-999999", "9" * 5000, "0x" + "f" * 10_000, "0." + "3" * 10_000, "0b101", "012", "1_000", "1:30",
    "9223372036854775808", ".inf", ".nan", "+.e3", "..", "~", "yes", "=", "<<", "2022-01-31", "''", "[]", "{}",
    "[[]]", '"\\0"', '"\\ud800"', '"\\N{DASH}"', "\u0661\u0662", "\U0001f600", "../../etc/passwd", "/dev/zero",
    "$(touch pwned)", "{{7*7}}", "%s%n", "*", "&a", "*a", "!!binary aGVsbG8=", "!!set {a, b}", "!!omap [a: 1]",
    "!!int x", "!local 3", "!", "!!seq {a: 1}", "? 1", "- 1", "|\n  x", "# x", "@x", "%x",
]  # fmt: skip
"""Written where a value belongs."""
BYTES = [
    b"\0", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\t", b"\x1b", b"\x85",
    b"\x7f",
]  # fmt: skip
"""Bytes that readers stumble over."""
COUNTS = [
    (number % 256**width).to_bytes(width, order)
    for number in (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
    for width in (1, 2, 4, 8)
    for order in ("little", "big")
]
"""Integers that count or measure something."""


@st.composite
def damaged(
    draw: st.DrawFn, whole: Sequence[bytes] | st.SearchStrategy[bytes], snippets: Sequence[bytes] = BYTES, most: int = 4
) -> bytes:
    """Draw bytes of `whole` with some pieces lost, doubled, moved, cut off, overwritten or put in."""
    data = draw(whole if isinstance(whole, st.SearchStrategy) else st.sampled_from(whole))
    for _ in range(draw(st.integers(1, most))):
        i, k = (draw(st.integers(0, len(data))) for _ in range(2))
        j = min(len(data), i + draw(st.sampled_from([0, 0, 1, 1, 2, 4, 8, 64, 4096, len(data)])))
        pieces = st.sampled_from([b"", data[i:j] * 2, data[k : k + 64], *snippets])
        data = data[:i] + draw(pieces | st.binary(min_size=1, max_size=16) | st.sampled_from(COUNTS)) + data[j:]
    return data


def encrypted(data: bytes) -> bytes:
    """Return a zip archive whose first member says that it is encrypted."""
    changed = bytearray(data)
    for sign, place in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        changed[data.index(sign) + place] |= 1
    return bytes(changed)


INTEGERS = [0, 1, 2, 3, 5, 8, 10, 30, 100, 1000, 10**6, 10**9, 10**12, 2**31, 2**32, 2**53, 2**62, 2**63 - 1]
NUMBERS = [1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.99, 1.0, 1.05, 2.0, 10.0, 1e3, 1e9, 1e30, 1e300]
TEXTS = ["a", "toy-1", "hidden_weight", "output_weight", "weight_1", "d.csv", "weights.npz", "weight_norm"]
ODD_KEYS = ["extends", "kindd", "x", "\ud800", "", "a.b", "<<"]
ANYTHING = st.sampled_from([None, True, [], {}, "", -1, 1e400, "x" * 100, "\0", [[]], {"kind": "x"}]) | (
    st.sampled_from(SCALARS).map(lambda text: text[:300])
)
ROOT = {"$ref": "#/$defs/RunConfig"}
_schema = cache(json_schema)


def _resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = _schema()["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def _one_in(draw: st.DrawFn, count: int) -> bool:
    return draw(st.integers(1, count)) == 1 + count // 2


@st.composite
def grown(draw: st.DrawFn, node: dict[str, Any] = ROOT, *, wild: bool = True) -> Any:  # noqa: PLR0911 - one a type
    """Draw a value that a node of the JSON Schema allows; if `wild`, one in a hundred is something else."""
    node = _resolved(node)
    if wild and _one_in(draw, 100):
        return draw(ANYTHING)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return draw(st.sampled_from(node["enum"]))
    if options := node.get("oneOf", node.get("anyOf")):
        return draw(grown(draw(st.sampled_from(options)), wild=wild))
    match node.get("type"):
        case "object":
            given, required = node.get("properties", {}), node.get("required", [])
            keys = [key for key in given if key in required or key == "kind" or _one_in(draw, 4)]
            keys = keys[1:] if wild and _one_in(draw, 100) else keys
            found = {key: draw(grown(given[key], wild=wild)) for key in keys}
            return found | ({draw(st.sampled_from(ODD_KEYS)): 1} if wild and _one_in(draw, 100) else {})
        case "array":
            least, most = node.get("minItems", 0), node.get("maxItems", 3)
            return draw(st.lists(grown(node["items"], wild=wild), min_size=least, max_size=max(least, min(most, 3))))
        case "integer" | "number" as kind:
            usual = [
                number for number in (INTEGERS if kind == "integer" else NUMBERS + INTEGERS) if _fits(number, node)
            ]
            other = st.integers(0, 9) if kind == "integer" else st.floats(allow_nan=False, allow_infinity=False)
            small = [number for number in usual if number <= 10] or usual
            return draw(st.sampled_from(small) | st.sampled_from(usual) if usual and not _one_in(draw, 20) else other)
        case "boolean":
            return draw(st.booleans())
        case "string":
            named = st.from_regex(node["pattern"], fullmatch=True) if "pattern" in node else st.text(max_size=20)
            return draw(named if _one_in(draw, 10) else st.sampled_from(TEXTS))
    return None


def _fits(number: float, node: dict[str, Any]) -> bool:
    return (
        node.get("minimum", number) <= number <= node.get("maximum", number)
        and node.get("exclusiveMinimum", number - 1) < number < node.get("exclusiveMaximum", number + 1)
    )  # fmt: skip


WAYS: list[Callable[[Any], str]] = [
    *(partial(json.dumps, indent=indent) for indent in (None, 1, 4, "\t")),
    partial(json.dumps, ensure_ascii=False, separators=(",", ":")),
    partial(yaml.safe_dump, default_flow_style=True, allow_unicode=True),
    *(partial(yaml.safe_dump, default_flow_style=False, default_style=style) for style in (None, '"', "'", "|")),
    *(partial(yaml.safe_dump, width=width, indent=indent) for width, indent in ((5, 2), (40, 3), (10_000, 9))),
    *(
        lambda data, end=end: yaml.safe_dump(
            data, default_flow_style=None, sort_keys=False, explicit_start=True, explicit_end=True
        ).replace("\n", end)
        for end in ("\n", "\r\n", "\n\n", " # x\n")
    ),
    lambda data: "\ufeff" + yaml.safe_dump(data),
]
"""Ways of writing a config down."""


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """Draw a config as YAML or JSON."""
    return draw(st.sampled_from(WAYS))(draw(grown())).encode(errors="surrogatepass")


@st.composite
def overrides(draw: st.DrawFn) -> str:
    """Draw the text of a `--set`."""
    node, path = ROOT, []
    while "properties" in (resolved := _resolved(node)):
        path.append(draw(st.sampled_from(list(resolved["properties"]))))
        node = _resolved(resolved["properties"][path[-1]])
        node = draw(st.sampled_from(node.get("oneOf", node.get("anyOf", [node]))))
        if _one_in(draw, 3):
            break
    if _one_in(draw, 20):
        path.insert(draw(st.integers(0, len(path))), draw(st.sampled_from(["", "0", "kind", "x" * 100, "\ud800", " "])))
    text = draw(st.sampled_from(SCALARS))[:120_000] if _one_in(draw, 3) else json.dumps(draw(grown(node)))
    return ".".join(path) + draw(st.sampled_from(["=", "=", "=", " = ", "", "=="])) + text
