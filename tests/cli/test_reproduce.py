import json
from pathlib import Path

import pytest

from dynamics_cli.errors import RunError
from dynamics_cli.reproduction import catalogue, reproduce
from dynamics_cli.reproduction.claims import Claim, at_least, claim, over_seeds
from dynamics_cli.reproduction.reproduce import FigureResult

GOOD = claim("good", "the loss falls", "Section 5", expected=at_least(1), measured=2.0)
BAD = claim("bad", "the loss rises", "Figure 3", expected=at_least(1), measured=float("nan"))

IDS = [figure.id for figure in catalogue.figures("boursier2022")]


def result(id, claims, **more):
    return FigureResult(
        id, [Path(f"/figures/{id}.pdf")], over_seeds([claims]), [], seconds=1.5, **more
    )


@pytest.fixture
def asked(monkeypatch):
    """What the reproduction of figures was asked for; fig2 fails, fig3 misses a claim, the
    others are well.
    """
    calls = []

    def reproduce_figures(ids, **options):
        calls.append((list(ids), options))
        for id in calls[-1][0]:
            if id == "boursier2022-fig2":
                yield id, RunError("the run diverged")
            else:
                yield (
                    id,
                    result(
                        id,
                        [GOOD, *([BAD] if id == "boursier2022-fig3" else [])],
                        numbers={"an angle": 60.0},
                    ),
                )

    monkeypatch.setattr(reproduce, "reproduce_figures", reproduce_figures)
    return calls


def test_a_variant_is_that_of_the_figures_that_have_it(dyn, asked):
    having = [
        figure.id for figure in catalogue.figures("boursier2022") if "flow" in figure.variants
    ]
    assert [id.rpartition("fig")[2] for id in having] == ["1", "2", "3", "4", "6", "7"]
    dyn("reproduce", "boursier2022", "--variant", "flow")
    dyn("reproduce", "boursier2022-fig3", "--variant", "flow")
    assert [(ids, given["variant"]) for ids, given in asked] == [
        (having, "flow"),
        (["boursier2022-fig3"], "flow"),
    ]


def test_strict_is_exit_code_5(dyn, asked):
    assert dyn("reproduce", "boursier2022-fig1", "--strict").code == 0
    answer = dyn("reproduce", "boursier2022-fig3", "--strict")
    assert (answer.code, answer.err) == (5, "claims not reproduced in boursier2022-fig3\n")


def test_several_figures_go_on_past_one_that_fails(dyn, asked):
    answer = dyn("reproduce", "--all", "--strict")
    assert answer.code == 6
    assert set(IDS) <= set(asked[0][0])
    told = f"1 of {len(asked[0][0])} figures failed: boursier2022-fig2"
    assert answer.err == f"boursier2022-fig2 failed:\nError: the run diverged\n{told}\n"
    summary = dict(zip(asked[0][0], answer.out.splitlines()[-len(asked[0][0]) :], strict=True))
    assert summary["boursier2022-fig2"].split() == ["boursier2022-fig2", "failed"]
    assert summary["boursier2022-fig4"].endswith("  1 of 1 claim reproduced on one seed")


def test_json_is_one_list(dyn, asked):
    answer = dyn(
        "reproduce", "boursier2022-fig1", "boursier2022-fig2", "boursier2022-fig3", "--json"
    )
    assert answer.code == 6
    fig1, fig2, fig3 = answer.json
    assert {"figure", "files", "claims", "runs"} <= set(fig1)
    assert fig1["files"] == ["/figures/boursier2022-fig1.pdf"]
    assert set(fig1["claims"][0]) == Claim.model_fields.keys() - {
        "note",
        "because",
    }
    assert (fig2["figure"], fig2["error"], fig2["files"]) == (
        "boursier2022-fig2",
        "the run diverged",
        [],
    )
    assert fig3["claims"][1]["measured"] is None


def test_a_real_figure(dyn, place):
    answer = dyn("reproduce", "boursier2022-fig2", "--strict", "--json", "--format", "png")
    assert (answer.code, answer.err) == (0, "")
    (fig2,) = answer.json
    figures = place / "outputs/figures"
    assert fig2["files"] == [
        str(figures / "boursier2022-fig2.png"),
        str(figures / "boursier2022-fig2.json"),
    ]
    assert all(Path(file).stat().st_size > 1000 for file in fig2["files"])
    assert {one["verdict"] for one in fig2["claims"]} == {"reproduced"}
    (run,) = fig2["runs"]
    assert (run["config"], run["reused"]) == ("boursier2022/orthogonal.yaml", False)
    assert json.loads((figures / "boursier2022-fig2.json").read_text())["claims"] == fig2["claims"]
    trained = dyn("train", "boursier2022/orthogonal", "--json")
    assert trained.json["path"] == run["path"]
    again = dyn("reproduce", "boursier2022-fig2", "--format", "png")
    assert again.code == 0
    assert "it/s" not in again.err
