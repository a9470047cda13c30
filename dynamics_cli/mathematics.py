"""Mathematics in sentences, as TeX between dollars: Unicode for terminals, MathML for pages."""

from __future__ import annotations

import html
import re
import unicodedata

FORMULA = re.compile(r"\$([^$]+)\$")
SYMBOLS = {
    "|": "‖",
    "Vert": "‖",
    "nabla": "∇",
    "sum": "∑",
    "int": "∫",
    "sqrt": "√",
    "infty": "∞",
    "le": "≤",
    "ge": "≥",
    "ne": "≠",
    "sim": "∼",
    "approx": "≈",
    "pm": "±",
    "times": "×",
    "cdot": "·",
    "to": "→",
    "in": "∈",
    "ell": "ℓ",
    "langle": "⟨",
    "rangle": "⟩",
    "top": "T",
    "{": "⦃",
    "}": "⦄",
    ",": " ",
    "bar": "\u0304",
    "hat": "\u0302",
    "left": "",
    "right": "",
    "mathrm": "",
    "mathsf": "",
    "text": "",
}
"""Commands of TeX -> characters; Greek letters are found by their names, other words stay."""
ABOVE = str.maketrans("0123456789+-()=nijkTtLd", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾⁼ⁿⁱʲᵏᵀᵗᴸᵈ")
BELOW = str.maketrans("0123456789+-()=aeijklmnoprstuvxθ,", "₀₁₂₃₄₅₆₇₈₉₊₋₍₎₌ₐₑᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓθ,")


def in_unicode(text: str) -> str:
    r"""Return a sentence with its formulas in Unicode: `$\|\nabla L\|^2 \ge 0$` -> `‖∇L‖² ≥ 0`."""
    return FORMULA.sub(lambda formula: _unicode(formula[1]), text)


def with_formulas(text: str) -> str:
    """Return a plain text whose symbols such as `w_j2` are formulas; code and formulas stay."""
    return re.sub(
        r"(`[^`]+`|\$[^$]+\$)|(?<![\w$])([A-Za-z])_([A-Za-z0-9]{1,2})(?!\w)",
        lambda match: match[1] or f"${match[2]}_{{{match[3]}}}$",
        text,
    )


def in_html(text: str) -> str:
    """Return a sentence as HTML: its formulas as MathML, words between backticks as code."""
    from latex2mathml.converter import convert

    parts = FORMULA.split(text)  # words, formula, words, ...
    parts[::2] = [
        re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(words)) for words in parts[::2]
    ]
    parts[1::2] = map(convert, parts[1::2])
    return "".join(parts)


def _unicode(tex: str) -> str:
    tex = re.sub(r"\\sqrt{([^{}]{2,})}", r"\\sqrt(\1)", tex)
    tex = re.sub(
        r"\\([A-Za-z]+|[^A-Za-z])( (?=[\w\\|({]))?",
        lambda match: _symbol(match[1], match[2] or ""),
        tex,
    )
    tex = re.sub("([\u0302\u0304]) ?{?(.)}?", r"\2\1", tex)  # a bar or a hat follows its letter
    tex = re.sub(r"([\^_])({[^{}]*}|.)", _raised, tex)
    return tex.translate({ord("{"): "", ord("}"): "", ord("⦃"): "{", ord("⦄"): "}"})


def _symbol(name: str, space: str) -> str:
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    try:
        letter = unicodedata.lookup(
            f"GREEK {size} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}"
        )
    except KeyError:
        letter = SYMBOLS.get(name, name)
    return letter + space * (letter in "≤≥≠≈±×→∈∼⦄" or letter == name)


def _raised(match: re.Match[str]) -> str:
    table = ABOVE if match[1] == "^" else BELOW
    inner = match[2].strip("{}")
    if len(inner) < 4 and all(ord(character) in table for character in inner):
        return inner.translate(table)
    if inner == "*":
        return inner
    if not inner.isalnum():
        inner = f"({inner})"
    return match[1] + inner
