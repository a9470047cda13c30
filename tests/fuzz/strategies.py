"""What hypothesis draws: bytes that were well-formed, and configs grown from their schema."""

import json
from functools import cache

import yaml
from hypothesis import strategies as st

from dynamics_cli.kinds import RunConfig, all_kinds

SCALARS = [
    "1e999999",
    "-1e-999999",
    "9" * 5000,
    "0x" + "f" * 10_000,
    "0." + "3" * 10_000,
    "0b101",
    "012",
    "1_000",
    "1:30",
    "9223372036854775808",
    ".inf",
    ".nan",
    "+.e3",
    "..",
    "~",
    "yes",
    "=",
    "<<",
    "2022-01-31",
    "''",
    "[]",
    "{}",
    "[[]]",
    '"\\0"',
    '"\\ud800"',
    '"\\N{DASH}"',
    "\u0661\u0662",
    "\U0001f600",
    "../../etc/passwd",
    "/dev/zero",
    "$(touch pwned)",
    "{{7*7}}",
    "%s%n",
    "*",
    "&a",
    "*a",
    "!!binary aGVsbG8=",
    "!!set {a, b}",
    "!!omap [a: 1]",
    "!!int x",
    "!local 3",
    "!",
    "!!seq {a: 1}",
    "? 1",
    "- 1",
    "|\n  x",
    "# x",
    "@x",
    "%x",
]
"""Written where a value belongs."""
BYTES = [
    b"\0",
    b"\xff",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\r",
    b"\t",
    b"\x1b",
    b"\x85",
    b"\x7f",
    bytes(8),
    (2**31).to_bytes(4, "little"),
    (2**63).to_bytes(8, "big"),
    b"\xff" * 8,
]
"""Bytes that readers stumble over, and integers that count or measure something."""


@st.composite
def damaged(
    draw,
    whole,
    snippets=BYTES,
    most=4,
):
    """Draw bytes of `whole` with some pieces lost, doubled, moved, cut off, overwritten or put
    in.
    """
    data = draw(whole if isinstance(whole, st.SearchStrategy) else st.sampled_from(whole))
    for _ in range(draw(st.integers(1, most))):
        i, k = (draw(st.integers(0, len(data))) for _ in range(2))
        j = min(len(data), i + draw(st.sampled_from([0, 0, 1, 1, 2, 4, 8, 64, 4096, len(data)])))
        pieces = st.sampled_from([b"", data[i:j] * 2, data[k : k + 64], *snippets])
        data = data[:i] + draw(pieces | st.binary(min_size=1, max_size=16)) + data[j:]
    return data


NUMBERS = [0, 1, 2, 3, 10, 100, 10**6, 10**12, 2**31, 2**53, 2**63 - 1]
FRACTIONS = [1e-12, 1e-3, 0.1, 0.5, 0.99, 1.0, 1.05, 10.0, 1e9, 1e300, *NUMBERS]
TEXTS = [
    "a",
    "toy-1",
    "hidden_weight",
    "output_weight",
    "weight_1",
    "d.csv",
    "weights.npz",
    "weight_norm",
]
ANYTHING = st.sampled_from(
    [None, True, [], {}, "", -1, 1e400, "x" * 100, "\0", [[]], {"kind": "x"}, *SCALARS[9:]]
)
_schema = cache(lambda cls: cls.model_json_schema())


def _one_in(draw, count):
    return draw(st.integers(1, count)) == 1 + count // 2


@st.composite
def grown(  # noqa: PLR0911 - one a type
    draw,
    node=None,
    *,
    wild=True,
    owner=RunConfig,
):
    """Draw a value that a node of the JSON Schema of an `owner` allows, by default a config; if
    `wild`, often something else.
    """
    node = node or _schema(owner)
    if "$ref" in node:
        node = _schema(owner)["$defs"][node["$ref"].rpartition("/")[2]]
    if section := node.get("kinds"):
        known = all_kinds(section)
        if section in ("activation", "schedule", "measure") and draw(st.booleans()):
            return draw(st.sampled_from(sorted(known)))
        owner = draw(st.sampled_from(list(known.values())))
        node = _schema(owner)
    if wild and _one_in(draw, 100):
        return draw(ANYTHING)
    if "const" in node:
        return node["const"]
    if "enum" in node:
        return draw(st.sampled_from(node["enum"]))
    if options := node.get("oneOf", node.get("anyOf")):
        return draw(grown(draw(st.sampled_from(options)), wild=wild, owner=owner))
    match node.get("type"):
        case "object":
            given = node.get("properties", {})
            required = node.get("required", [])
            keys = [key for key in given if key in required or key == "kind" or _one_in(draw, 4)]
            found = {key: draw(grown(given[key], wild=wild, owner=owner)) for key in keys}
            return found | (
                {draw(st.sampled_from(["extends", "kindd", "", "<<"])): 1}
                if wild and _one_in(draw, 100)
                else {}
            )
        case "array":
            least = node.get("minItems", 0)
            most = node.get("maxItems", 3)
            return draw(
                st.lists(
                    grown(node["items"], wild=wild, owner=owner),
                    min_size=least,
                    max_size=max(least, min(most, 3)),
                )
            )
        case "integer" | "number" as kind:
            fitting = [
                number
                for number in (NUMBERS if kind == "integer" else FRACTIONS)
                if _fits(number, node)
            ]
            small = [number for number in fitting if number <= 10] or fitting
            return draw(
                st.sampled_from(small) | st.sampled_from(fitting) if fitting else st.integers(0, 9)
            )
        case "boolean":
            return draw(st.booleans())
        case "string":
            named = (
                st.from_regex(node["pattern"], fullmatch=True)
                if "pattern" in node
                else st.text(max_size=20)
            )
            return draw(named if _one_in(draw, 10) else st.sampled_from(TEXTS))
    return None


def _fits(number, node):
    return node.get("minimum", number) <= number <= node.get("maximum", number) and node.get(
        "exclusiveMinimum", number - 1
    ) < number < node.get("exclusiveMaximum", number + 1)


@st.composite
def written(draw):
    """Draw a config as YAML or JSON."""
    write = draw(
        st.sampled_from(
            [json.dumps, yaml.safe_dump, lambda data: yaml.safe_dump(data, default_style='"')]
        )
    )
    return str(write(draw(grown()))).encode(errors="surrogatepass")
