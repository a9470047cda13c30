"""Mathematics of sentences in terminals and on pages."""

import pytest

from dynamics_cli.mathematics import in_html, in_unicode, with_formulas


@pytest.mark.parametrize(
    ("tex", "seen"),
    [
        (r"$\|\nabla L\|^2/L \ge \|D_-\|$", "‖∇L‖²/L ≥ ‖D₋‖"),
        (r"the ratio $\hat\beta_{j,1} / \sqrt{d+1}$ in \$", "the ratio β̂ⱼ,₁ / √(d+1) in \\$"),
        (r"$P_\mathrm{train} \in \{-1, 1\}$, $\lambda^*$", "P_train ∈ {-1, 1}, λ*"),
        ("no formula", "no formula"),
    ],
)
def test_formulas_are_unicode_in_terminals(tex, seen):
    assert in_unicode(tex) == seen


def test_formulas_are_mathml_on_pages_and_words_are_escaped():
    written = in_html(r"a < b as $x^2$ grows")
    assert written.startswith("a &lt; b as <math")
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in written


def test_symbols_of_plain_texts_are_formulas():
    text = "x is -w_j2/w_j1 of `w_j` and $a_i$, not test_loss, w_bar or run_1"
    said = "x is -$w_{j2}$/$w_{j1}$ of `w_j` and $a_i$, not test_loss, w_bar or run_1"
    assert with_formulas(text) == said
