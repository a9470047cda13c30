"""`dyn audit`: claims under nulls; what holds for untrained networks is named."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

import dynamics_cli as dyn
from dynamics_cli._bundled import CONFIGS
from dynamics_cli.cli import main
from dynamics_cli.config import load_config
from dynamics_cli.errors import UsageError
from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction import audit, reproduce
from dynamics_cli.reproduction.audits import Audit, NullOutcome, read_audit
from dynamics_cli.reproduction.claims import at_least, at_most, claim, presupposing
from dynamics_cli.reproduction.document import figures_in, verify, verify_figure
from dynamics_cli.reproduction.figure import Figure, Wanted
from dynamics_cli.sweeps.find import list_runs, open_run
from dynamics_cli.training.session import obtain_run, plan_run
from tests.experiments.helpers import unfalsified

ORTHOGONAL = {"net": "boursier2022/orthogonal.yaml"}


def _figure(evidence, draw=lambda _: None, **changes):
    """Return a figure of one run whose first claim needs training, and whose second holds for
    any network.
    """

    def claims(loss):
        held = claim(
            "shape", "it has weights", "here", at_most(1e9), 0.0, always="every network has weights"
        )
        return [claim("fitted", "the loss falls", "here", at_most(1e-3), loss), held]

    return Figure("boursier2022-fig2", "", evidence, claims, draw, configs=ORTHOGONAL, **changes)


def _final_loss(runs):
    return float(runs["net"].losses[-1])


def test_claims_fail_under_nulls_or_say_why_not(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))
    own = {"short": ("optimizer.iterations=10",)}
    monkeypatch.setattr(reproduce, "load_figure", lambda _: _figure(_final_loss, nulls=own))
    found = audit.audit("any", nulls=["untrained", "early", "short"])
    held = {one.null: dict(one.held) for one in found.nulls}
    assert held == {
        key: {"fitted": False, "shape": True} for key in ("untrained", "early", "short")
    }
    assert found.survivors("untrained") == []  # the claim that holds says why
    assert figures_in(tmp_path / "figures") == []
    assert read_audit(tmp_path / "figures/boursier2022-fig2.audit.json") == found
    trained = list_runs()  # of the figure itself, not under the nulls
    assert [Path(run["path"]).parent for run in trained] == [tmp_path / "runs"]
    assert open_run("latest").path == trained[0]["path"]
    assert len(list((tmp_path / "audits").iterdir())) == 3
    assert len(verify()) == 4
    with pytest.raises(UsageError, match="no null 'untraned' .did you mean 'untrained'"):
        audit.audit("any", nulls=["untraned"])


def test_an_audit_belongs_to_the_runs_that_the_figure_was_drawn_from(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))
    drawn = _figure(_final_loss, draw=lambda _: new_figure()[0])
    monkeypatch.setattr(reproduce, "load_figure", lambda _: drawn)
    settings = {"optimizer.iterations": 20}
    audit.audit("any", nulls=["untrained"], overrides=settings)
    for overrides, belongs in ((settings, True), ((), False)):
        result = reproduce.reproduce("any", overrides=overrides, formats=["png"])
        html = dyn.page(result).html()
        assert ("under 1 null<" in html) == belongs
        assert ("audit.json is not shown: it was made of other runs" in html) == (not belongs)
        findings = [found.file.name for found in verify_figure(result.files[-1])]
        assert findings == ([] if belongs else ["boursier2022-fig2.audit.json"])


def test_settings_and_presets_are_those_of_the_audited_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))
    full = {"full": {"net": Wanted(ORTHOGONAL["net"], ("optimizer.iterations=30",))}}
    lengths = []

    def evidence(runs):
        lengths.append(runs["net"].iterations)
        return 0.0

    monkeypatch.setattr(reproduce, "load_figure", lambda _: _figure(evidence, presets=full))
    audit.audit("any", nulls=["untrained"], overrides={"optimizer.iterations": 20})
    audit.audit("any", nulls=["untrained"], preset="full")
    assert lengths == [20, 20, 30, 30]
    with pytest.raises(UsageError, match="no preset 'fall'.*did you mean 'full'"):
        audit.audit("any", preset="fall")


def test_a_claim_fails_untrained_and_under_a_further_null(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))
    monkeypatch.setattr(reproduce, "load_figure", lambda _: _figure(_final_loss))
    assert unfalsified(audit.audit("any", nulls=["untrained", "early"])) == set()
    held = {
        "untrained": {"a": True, "b": False, "c": True},
        "early": {"a": False, "b": True, "c": True},
    }
    claims = [claim(key, "text", "here", at_most(1.0), 0.0) for key in "abc"]
    nulls = [NullOutcome(null=null, held=one) for null, one in held.items()]
    assert unfalsified(Audit(figure="any", claims=claims, nulls=nulls)) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("config", "null", "key", "share"),
    [
        ("boursier2022/orthogonal.yaml", "untrained", "lr", 1e-12),
        ("boursier2022/orthogonal.yaml", "early", "iterations", 1e-2),
        ("boursier2022/orthogonal_flow.yaml", "untrained", "until", 1e-12),
        ("woodworth2020/flow.yaml", "early", "first", 1e-2),
        ("boursier2022/orthogonal_flow.yaml", "larger", "until", 1e-4),
        ("liu2023/student.yaml", "decay", "weight_decay", 1e12),
    ],
)
def test_nulls_change_steps_lengths_and_times(config, null, key, share):
    before = load_config(CONFIGS / config)
    after = load_config(CONFIGS / config, audit.NULLS[null](before))
    assert getattr(after.optimizer, key) == pytest.approx(
        share * getattr(before.optimizer, key), rel=1e-9
    )


def test_nulls_of_steps_and_layers():
    path = CONFIGS / "boursier2022" / "orthogonal.yaml"
    before = load_config(path)

    def under(null):
        return load_config(path, audit.NULLS[null](before))

    assert under("one_step").optimizer.count(1) == 1
    slow = under("slow").optimizer
    assert (slow.lr, set(slow.layer_lr.values())) == (before.optimizer.lr, {0.01})
    assert under("random_features").architecture.train == ["output_weight"]
    first_alone = load_config(path, ["architecture.train_output=false"])
    assert audit.NULLS["random_features"](first_alone) == []
    flow = load_config(CONFIGS / "boursier2022" / "orthogonal_flow.yaml")
    assert [audit.NULLS[null](flow) for null in ("one_step", "slow")] == [[], []]


ONE_UPDATE = [
    ("boursier2022/orthogonal.yaml", ["optimizer.iterations=1"], 1e-3),
    ("boursier2022/orthogonal.yaml", ["optimizer.iterations=1", "backend=torch"], 1e-3),
    (
        "boursier2022/orthogonal.yaml",
        ["optimizer={kind: torch, name: RMSprop, lr: 0.01, iterations: 1}"],
        1e-3,
    ),
    ("boursier2022/orthogonal.yaml", ["optimizer={kind: adam, lr: 0.01, iterations: 1}"], 1e-3),
    (
        "boursier2022/orthogonal.yaml",
        ["optimizer={kind: sgd, lr: 0.01, iterations: 1, batch_size: 1}"],
        1e-3,
    ),
    (
        "chizat2019/online.yaml",  # steps of layers of its own
        ["optimizer.iterations=1", "dataset.n=50"],
        1e-2,
    ),
    ("tachet2018/gan.yaml", ["optimizer.epochs=null", "optimizer.iterations=1"], 0.1),
    (
        "woodworth2020/flow.yaml",
        ["optimizer={kind: gradient_flow, until: 1e-6, points: 1, rtol: 1e-8}"],
        1e-4,
    ),
]
"""A run of one update, or of a flow for as short, by each way to train."""


@pytest.mark.parametrize(("config", "changes", "rtol"), ONE_UPDATE)
def test_a_wrong_gradient_moves_one_matrix_the_wrong_way(config, changes, rtol, tmp_path):
    path = CONFIGS / config
    changes = [*changes, "dtype=float64", "record.measures=[]", "record.parameters=all"]
    before = load_config(path, changes)
    null = audit.NULLS["wrong_gradient"](before)
    moved = []
    for k, more in enumerate(([], null)):
        run = obtain_run(plan_run(load_config(path, [*changes, *more]), tmp_path / f"{k}")).run
        moved.append({name: w[-1] - w[0] for name, w in run.parameters.items()})
    right, wrong = moved
    factors = {
        name: np.vdot(wrong[name], w) / np.vdot(w, w) for name, w in right.items() if w.any()
    }
    turned = [name for name, factor in factors.items() if factor < 0]
    assert len(turned) == 1
    assert "bias" not in turned[0]
    for name, factor in factors.items():
        expected = audit.WRONG if name in turned else 1.0
        assert factor == pytest.approx(expected, rel=rtol)


def test_a_wrong_gradient_leaves_what_a_flow_imposes(tmp_path):
    path = CONFIGS / "boursier2022" / "orthogonal_flow.yaml"
    before = load_config(path, ["optimizer.until=2.0", "optimizer.points=20"])
    null = ["optimizer.until=2.0", "optimizer.points=20", *audit.NULLS["wrong_gradient"](before)]
    run = obtain_run(plan_run(load_config(path, null), tmp_path / "run")).run
    W = run.parameters["hidden_weight"]
    a = run.parameters["output_weight"]
    balance = np.abs(a**2 - np.sum(W**2, axis=2)).max()
    # without the law 3 (a^2 - a(0)^2) = -(||w||^2 - ||w(0)||^2) would hold
    assert balance < 1e-6 * np.max(a**2)


def test_a_claim_that_holds_without_its_premise_holds_under_the_null(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))

    def claims(iterations):
        made = [claim(key, "text", "Lemma", at_most(end), iterations) for key, end in ENDS.items()]
        return [presupposing(one, "it is long", at_least(20), iterations) for one in made]

    ENDS = {"any": 1e9, "long": 25}
    figure = Figure(
        "boursier2022-fig2",
        "",
        lambda runs: runs["net"].iterations,
        claims,  # type: ignore[arg-type]
        configs=ORTHOGONAL,
        nulls={"short": ("optimizer.iterations=10",), "long": ("optimizer.iterations=30",)},
        passes={"short": {"any long": "the premise says nothing"}},
    )
    monkeypatch.setattr(reproduce, "load_figure", lambda _: figure)
    done = audit.audit("any", nulls=["short", "long"], overrides=["optimizer.iterations=20"])
    assert [dict(one.held) for one in done.nulls] == [
        {"any": True, "long": True},
        {"any": True, "long": False},
    ]
    assert dict(done.nulls[0].measured) == {"any": 10.0, "long": 10.0}
    assert "short (10): the premise says nothing" in done.table()[1][0][-1]


def test_data_that_break_a_premise_are_those_of_their_config(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))
    for name, reason in (("boursier2022-orthogonal", ""), ("another", "no null")):
        data = {name: ("dataset.x=[[1.0], [2.0]]",)}
        drawn = _figure(_final_loss, nulls={"data": data})
        monkeypatch.setattr(reproduce, "load_figure", lambda _, drawn=drawn: drawn)
        done = audit.audit("any", nulls=["data"], overrides=["optimizer.iterations=20"])
        assert done.nulls[0].reason.startswith(reason)
        assert bool(done.nulls[0].reason) == bool(reason)
        assert done.survivors("data") == []  # of a claim that says why it always holds


def test_equal_labels_leave_no_null_by_permutation(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))
    monkeypatch.setattr(reproduce, "load_figure", lambda _: _figure(_final_loss))
    short = ["optimizer.iterations=20"]
    for labels, reason in (
        ("[1.0, 1.0]", "no null: it changes no run of this figure"),
        ("[-1.0, 1.0]", ""),
    ):
        changes = [*short, f"dataset.y={labels}"]
        done = audit.audit("any", nulls=["shuffled"], overrides=changes)
        assert done.nulls[0].reason == reason


def test_networks_are_linear_and_decay_alone(tmp_path):
    linear = audit.NULLS["linear"](load_config(CONFIGS / ORTHOGONAL["net"]))
    assert load_config(CONFIGS / ORTHOGONAL["net"], linear).architecture.activation.kind == "linear"
    path = CONFIGS / ORTHOGONAL["net"]
    rules = [
        "{kind: sgd, lr: 0.1, weight_decay: 0.5, iterations: 20}",
        "{kind: rmsprop, lr: 1e-3, weight_decay: 0.5, iterations: 20}",
        "{kind: adamw, lr: 0.01, weight_decay: 5.0, iterations: 20}",
    ]
    for k, rule in enumerate(rules):
        changes = [f"optimizer={rule}", "initialization.scale=1.0"]
        alone = audit.NULLS["decay"](load_config(path, changes))
        run = obtain_run(plan_run(load_config(path, [*changes, *alone]), tmp_path / f"{k}")).run
        for values in run.parameters.values():
            before = values[0]
            after = values[-1]
            step = {0: 0.1 * 0.5, 2: 0.01 * 5.0}.get(k)  # lr lambda
            expected = (
                before * (1 - step) ** 20
                if step
                else before - np.sign(before) * np.abs(before - after)
            )
            assert_allclose(after, expected, rtol=1e-4, atol=1e-6)
            assert step or (np.abs(before - after)[np.abs(before) > 0.1] > 0.01).all()


def test_the_command_prints_a_table_and_is_strict(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))
    done = CliRunner().invoke(
        main, ["audit", "boursier2022-fig2", "--null", "untrained", "--strict"]
    )
    assert "both-fitted" in done.stdout
    held = [line.split()[0] for line in done.stdout.splitlines() if "HOLDS" in line]
    assert (done.exit_code == 5) == bool(held)
    monkeypatch.setattr(reproduce, "load_figure", lambda _: _figure(lambda _: 0.0))
    options = ["--null", "untrained", "--null", "shuffled", "--quiet", "--strict"]
    done = CliRunner().invoke(main, ["audit", "boursier2022-fig2", *options])
    assert (done.exit_code, done.stderr.count("\n")) == (5, 1)
    assert "boursier2022-fig2: under untrained fitted holds: " in done.stderr


def test_longer_training_tells_the_claims_that_change(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))

    def claims(length):
        ends = [claim("short", "it is short", "here", at_most(30), length)]
        ends.append(claim("any", "it has a length", "here", at_most(1000), length))
        return ends

    figure = Figure(
        "boursier2022-fig2",
        "",
        lambda runs: runs["net"].iterations,
        claims,  # type: ignore[arg-type]
        draw=lambda _: new_figure()[0],
        configs=ORTHOGONAL,
    )
    monkeypatch.setattr(reproduce, "load_figure", lambda _: figure)
    settings = {"optimizer.iterations": 20}
    audit.audit("any", nulls=["one_step"], overrides=settings)
    found = audit.audit("any", longer=4, overrides=settings)
    assert found.changed() == ["short"]
    header = ["claim", "one_step", "4 times as long", "why it holds"]  # one table for both
    rows = [["short", "HOLDS", "changes (80)", ""], ["any", "HOLDS", "same", ""]]
    assert found.table() == (header, rows)
    assert found.nulls[1].remark == "4 times as long: 1 of 2 claims change"
    assert read_audit(tmp_path / "figures/boursier2022-fig2.audit.json") == found
    assert [Path(run["path"]).parent for run in list_runs()] == [tmp_path / "runs"]
    for overrides, belongs in ((settings, True), ({"optimizer.iterations": 10}, False)):
        result = reproduce.reproduce("any", overrides=overrides, formats=["png"])
        assert ("1 of 2 claims change" in dyn.page(result).html()) == belongs
        findings = [fault.file.name for fault in verify_figure(result.files[-1])]
        assert findings == ([] if belongs else ["boursier2022-fig2.audit.json"])
    anew = audit.audit("any", nulls=["one_step"], overrides={"optimizer.iterations": 10})
    assert [outcome.null for outcome in anew.nulls] == ["one_step"]  # of other runs
    with pytest.raises(UsageError, match="a number above 1, not 1"):
        audit.audit("any", longer=1)


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ("boursier2022/orthogonal.yaml", {"iterations": 80000}),
        ("boursier2022/orthogonal_flow.yaml", {"until": 80.0, "points": 80000}),
        ("woodworth2020/flow.yaml", {"until": 80.0, "points": 228}),
    ],
)
def test_a_longer_run_keeps_its_spacing(config, length):
    before = load_config(CONFIGS / config)
    after = load_config(CONFIGS / config, audit._lengthened(4, before))
    assert {key: getattr(after.optimizer, key) for key in length} == length
    if before.optimizer.is_flow:
        spacing = [optimizer.times()[1:3] for optimizer in (before.optimizer, after.optimizer)]
        np.testing.assert_allclose(*spacing, rtol=1e-3)
