"""The figures of Boursier et al. 2022 on runs that are really trained, with numbers of the paper and its theory."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.boursier2022.states import (
    LineState,
    LossCurve,
    horizon,
    initial_scale,
    loss_curve,
    state_at,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from dynamics_cli.errors import InputError
from dynamics_cli.plotting.style import PALETTE
from dynamics_cli.reproduction.catalogue import figures, load_figure
from tests.experiments.helpers import (
    by_id,
    claims_of,
    drawing,
    evidence_of,
    has_line,
    labels,
    legend,
    lines,
    one_run,
    shown,
    titles,
    verdicts,
)
from tests.experiments.test_figures import FIGURES

ALL = [listed.id for listed in figures("boursier2022")]
SHORT = ("optimizer.iterations=40", "record.snapshots.include=[]")
NEURONS = r"neuron $\mathsf{s}_j\,\Vert w_j\Vert$"


def panels(drawn: Drawing) -> list[Axes]:
    """Return the axes without those on the right that share a panel."""
    return [axes for axes in drawn.axes if not axes.get_ylabel().startswith(NEURONS)]


@pytest.mark.parametrize("figure_id", ALL)
def test_a_run_that_is_much_too_short_gives_verdicts_and_a_picture(figure_id: str) -> None:
    figure = load_figure(figure_id)
    evidence = evidence_of(figure, SHORT)
    assert "not reproduced" in verdicts(figure.claims(evidence)).values()
    assert len(drawing(figure, evidence).axes) == FIGURES[figure_id].panels


# what is drawn


def check_curve(axes: Axes, curve: LossCurve) -> None:
    """The first line is the loss, thinned out, from the first iteration to the last."""
    x, y = lines(axes)[0]
    np.testing.assert_array_equal(y, curve.losses[np.searchsorted(curve.iterations, x)])
    assert (x[0], x[-1]) == (curve.iterations[0], curve.iterations[-1])
    assert len(x) > 1000


def check_states(drawn: Drawing, states: list[LineState], x: np.ndarray, y: np.ndarray) -> None:
    """Every panel shows the function, the data, and the neurons whose kinks are in the window."""
    right = [axes for axes in drawn.axes if axes.get_ylabel() == NEURONS]
    for twin, state in zip(right, states, strict=False):
        grid, h = lines(twin)[0]
        np.testing.assert_allclose(h, state.function(grid))
        assert has_line(twin, x, y)
        inside = (state.kinks >= grid[0]) & (state.kinks <= grid[-1])
        assert has_line(twin, *(np.where(inside, values, np.nan) for values in (state.kinks, state.outputs)))
    assert len(right) == len(states)
    assert {axes.get_ylim() for axes in right} == {right[0].get_ylim()}


def test_figure_1_draws_the_ends_of_the_phases() -> None:
    evidence, drawn = shown("boursier2022-fig1")
    (axes,) = drawn.axes
    assert [bar.get_x() for bar in axes.patches] == evidence.ends[:-1]
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], np.diff(evidence.ends))
    texts = [text.get_text() for text in axes.texts]
    assert texts[1:5] == [
        "early alignment (Lemma 2)",
        "fitting positive labels (Lemma 3)",
        "intermediate saddle (Fact 1)",
        "fitting negative labels (Lemma 4)",
    ]
    assert len([text for text in texts if "frac" in text]) == 4
    assert labels(drawn) == [("iteration", "")]


def test_figure_2_draws_function_data_and_neurons() -> None:
    evidence, drawn = shown("boursier2022-fig2")
    check_states(drawn, evidence.states, evidence.setting.x[:, 0], evidence.setting.y)
    assert titles(drawn)[:2] == ["(a) Initialisation (it. 0)", "(b) End of first phase (it. 4\N{THIN SPACE}000)"]
    assert legend(drawn) == ["data", r"estimated function $h_\theta$", "neurons"]


def test_figure_3_draws_both_curves_and_marks_where_saddles_are_left() -> None:
    evidence, drawn = shown("boursier2022-fig3")
    (axes,) = drawn.axes
    check_curve(axes, evidence.curve)
    x, y = lines(axes)[1]
    np.testing.assert_array_equal(y, evidence.prediction[np.searchsorted(evidence.curve.iterations, x)])
    for at, level in zip(evidence.left, (evidence.curve.start, 0.5), strict=True):
        assert has_line(axes, [at], [0.99 * level])
    assert legend(drawn) == ["measured", "predicted (Section 4.2)"]


def test_figure_4_marks_its_states_on_the_loss() -> None:
    evidence, drawn = shown("boursier2022-fig4")
    check_states(drawn, evidence.states, evidence.x[:, 0], evidence.y)
    profile = drawn.axes[5]
    check_curve(profile, evidence.curve)
    for state in evidence.states[1:]:
        assert has_line(profile, [state.iteration], [evidence.curve.at(state.iteration)])
    assert has_line(profile, [evidence.plateau.first, evidence.plateau.last], [evidence.plateau.value] * 2)
    assert [text.get_text() for text in profile.texts] == ["0.0636", "b", "c", "d", "e"]


def test_figure_5_draws_the_interpolator_over_the_last_state() -> None:
    evidence, drawn = shown("boursier2022-fig5")
    check_states(drawn, [evidence.first, evidence.last], evidence.x[:, 0], evidence.y)
    x, y = lines([axes for axes in drawn.axes if axes.get_ylabel() == NEURONS][-1])[-1]
    np.testing.assert_array_equal(y, evidence.interpolator(x))
    assert "NTK interpolator" in legend(drawn)


def test_figure_7_draws_loss_and_ratios() -> None:
    evidence, drawn = shown("boursier2022-fig7")
    profile, bars = drawn.axes
    check_curve(profile, evidence.curve)
    np.testing.assert_array_equal([bar.get_height() for bar in bars.patches], evidence.ratios[:10])


def test_the_extra_figure_draws_norm_and_excess_against_the_scale() -> None:
    evidence, drawn = shown("boursier2022-extra-norm")
    norm, excess = drawn.axes
    assert has_line(norm, [0, 1], [evidence.wide.least] * 2)
    for series in (evidence.wide, evidence.few):
        assert has_line(norm, series.scales, series.norms)
        assert (series.excess > 0).all()
        assert has_line(excess, series.scales, series.excess)


# numbers


def test_fact_1_and_the_linear_interpolator_have_the_numbers_of_an_independent_derivation() -> None:
    fact = claims_of("boursier2022-fig1")["fact-1"]
    assert (fact.measured, fact.expected) == (pytest.approx(0.711, abs=5e-4), "<= 0.672625")
    below = claims_of("boursier2022-fig2")["below-linear"]
    assert (below.measured, below.expected) == (pytest.approx(1.3416, abs=5e-4), "< 2")


@pytest.mark.parametrize("changed", ["initialization.scale=300", "dataset.y=[1.0, 1.0]", "dataset.x=[[0.5], [2.0]]"])
@pytest.mark.parametrize("figure_id", [f"boursier2022-fig{k}" for k in (1, 2, 3)])
def test_where_the_theory_says_nothing_claims_are_not_reproduced(figure_id: str, changed: str) -> None:
    figure = load_figure(figure_id)
    evidence = evidence_of(figure, (changed, "optimizer.lr=1e-6", *SHORT))
    assert "not reproduced" in verdicts(figure.claims(evidence)).values()
    drawing(figure, evidence)


def test_a_seed_that_violates_assumption_3_is_said() -> None:
    figure = load_figure("boursier2022-fig2")
    for offset in range(20):
        evidence = evidence_of(figure, ("architecture.width=4", *SHORT), offset)
        if not evidence.setting.assumptions[2].holds:
            break
    else:
        pytest.fail("no seed with 4 neurons violates Assumption 3")
    assert figure.remarks is not None
    assert any("Assumption 3" in remark and "is violated" in remark for remark in figure.remarks(evidence))
    claims = by_id(figure.claims(evidence))
    assert claims["assumption-3"].verdict == "not reproduced"
    assert len(panels(drawing(figure, evidence))) == 4


def test_figure_3_without_orthogonality_has_no_prediction_but_a_picture() -> None:
    figure = load_figure("boursier2022-fig3")
    evidence = evidence_of(figure, ("dataset.x=[[0.5], [2.0]]", *SHORT))
    assert evidence.prediction is None
    assert verdicts(figure.claims(evidence))["predicted-curve"] == "not reproduced"
    drawn = drawing(figure, evidence)
    assert legend(drawn) == ["measured"]
    assert "second saddle" not in "".join(text.get_text() for text in drawn.axes[0].texts)


def test_figure_2_refuses_inputs_of_more_dimensions() -> None:
    with pytest.raises(InputError, match="one input and a bias"):
        evidence_of("boursier2022-fig2", ("dataset.x=[[1.0, 0.0], [0.0, 1.0]]", *SHORT))


def test_figure_4_with_seed_0_stays_at_the_saddle_and_says_why() -> None:
    figure = load_figure("boursier2022-fig4")
    evidence = evidence_of(figure, ("seed=0",))
    claims = by_id(figure.claims(evidence))
    assert claims["zero-loss"].verdict == "not reproduced"
    assert claims["zero-loss"].measured == pytest.approx(0.0636, abs=1e-4)
    assert claims["negative"].measured == 0
    assert figure.remarks is not None
    (remark,) = figure.remarks(evidence)
    assert "Lemma 1" in remark
    assert figure.remarks(evidence_of(figure)) == []


def test_figure_6_draws_red_for_negative_and_purple_for_positive_output_weights() -> None:
    figure = load_figure("boursier2022-fig6")
    evidence = evidence_of(figure, SHORT)
    signs = evidence.states[0].signs
    for axes in drawing(figure, evidence).axes:
        stars = [line for line in axes.lines if line.get_marker() == "*" and len(line.get_xdata())]
        drawn = {line.get_markerfacecolor(): len(line.get_xdata()) for line in stars}
        assert drawn == {PALETTE.negative: int((signs < 0).sum()), PALETTE.positive: int((signs > 0).sum())}


FLOW = [listed.id for listed in figures("boursier2022") if "flow" in listed.variants]
QUICK_FLOW = [f"boursier2022-fig{k}" for k in (1, 2, 3)]
SLOW_FLOW = [pytest.param(id_, marks=pytest.mark.long) for id_ in FLOW if id_ not in QUICK_FLOW]


@pytest.mark.parametrize("figure_id", [*QUICK_FLOW, *SLOW_FLOW])
def test_all_claims_but_the_known_are_reproduced_on_gradient_flow(figure_id: str) -> None:
    figure = load_figure(figure_id).as_variant("flow")
    evidence = evidence_of(figure)
    stated = verdicts(figure.claims(evidence))
    assert {id for id, verdict in stated.items() if verdict != "reproduced"} == FIGURES[figure_id].missing
    assert list(stated) == list(verdicts(claims_of(figure_id)))
    shown = "".join("".join(one) for one in [titles(drawing(figure, evidence)), *labels(drawing(figure, evidence))])
    assert "$t" in shown
    assert "it." not in shown


def test_the_flow_is_nearer_to_the_theory_than_gradient_descent_by_far() -> None:
    """Descent with step 1e-3 departs from the flow by the order of the step, the flow from u+ by lambda."""
    descent, flow = (
        by_id(figure.claims(evidence_of(figure)))["predicted-curve"].measured
        for figure in (load_figure("boursier2022-fig3"), load_figure("boursier2022-fig3").as_variant("flow"))
    )
    assert 1e-3 < descent < 1e-2
    assert flow < 1e-6


def test_the_flow_leaves_the_saddle_of_figure_4_with_the_seed_for_which_descent_stays() -> None:
    figure = load_figure("boursier2022-fig4").as_variant("flow")
    claims = by_id(figure.claims(evidence_of(figure, ("seed=0",))))
    assert claims["flipped"].measured == 0  # Lemma 1
    assert {one.verdict for one in claims.values()} == {"reproduced", "shown"}


def test_states_of_the_flow_are_those_at_the_times_of_the_iterations() -> None:
    shorter = ("optimizer.until=0.4", "optimizer.points=40", "record.snapshots={kind: every, interval: 1}")
    run = one_run("boursier2022/five_points_flow.yaml", *shorter)
    state = state_at(run, 151)  # state i is the flow at time i/100, iteration 10 i
    assert (state.iteration, state.when) == (150, "$t = 0.15$")
    np.testing.assert_array_equal(state.W, run.state(15)["hidden_weight"])
    curve = loss_curve(run)
    assert curve.iterations.tolist() == list(range(0, 401, 10))
    assert len(curve.losses) == 41
    assert curve.flow
    assert horizon(run) == 400


def test_the_lambda_of_the_configs_is_the_papers() -> None:
    run = one_run("boursier2022/orthogonal.yaml", *SHORT)
    assert initial_scale(run) == pytest.approx(1e-6 / np.sqrt(60))
    run = one_run("boursier2022/high_dim.yaml", *SHORT)
    assert initial_scale(run) == pytest.approx(1e-20 / np.sqrt(200 * 150), rel=0.02)  # from 30 000 draws
