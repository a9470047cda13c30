from pathlib import Path

import pytest

from dynamics_cli import analysis, api, load_run
from dynamics_cli.cli import output
from dynamics_cli.errors import UsageError


@pytest.fixture
def drawn(monkeypatch, dyn):
    """Train the run `here`; what of it is drawn is noted."""
    dyn("train", "toy.yaml", "--out", "here")
    calls = []
    draw_panel = analysis.draw_panel

    def noted(run, name, iteration, log, labels):
        calls.append((name, iteration))
        return draw_panel(run, name, iteration, log, labels)

    monkeypatch.setitem(vars(analysis), "draw_panel", noted)
    return calls


def test_all_panels_that_the_run_offers(dyn, drawn):
    answer = dyn("plot", "here")
    assert (answer.code, answer.err) == (0, "")
    names = [panel.name for panel in analysis.panels_of(load_run("here"))]
    assert len(names) > 1
    assert answer.out.split() == [f"here/plots/{name}.png" for name in names]
    assert drawn == [(name, None) for name in names]
    assert all(Path(file).read_bytes().startswith(b"\x89PNG") for file in answer.out.split())


def test_chosen_panels_states_and_formats(dyn, drawn):
    options = [
        "--panel",
        "function",
        "--at",
        5,
        "--at",
        21,
        "--format",
        "pdf",
        "--format",
        "svg",
        "--out",
        "there",
    ]
    answer = dyn("plot", "here", *options)
    assert answer.code == 0
    assert drawn == [("function", 5), ("function", 21)]
    assert answer.err == "no state was recorded at iteration 21; the nearest, 20, is shown\n"
    assert answer.out.split() == [
        f"there/function-{i}.{kind}" for i in (5, 21) for kind in ("pdf", "svg")
    ]
    assert Path("there/function-5.pdf").read_bytes().startswith(b"%PDF")


def test_the_animation_comes_alone_unless_panels_are_asked_for(dyn, drawn, monkeypatch):
    def animate_run(run, file, progress):
        progress(1, 2)
        return file

    monkeypatch.setitem(vars(analysis), "animate_run", animate_run)
    monkeypatch.setattr(output, "LOG_INTERVAL", 0.0)
    answer = dyn("plot", "here", "--animate")
    assert answer.out == "here/plots/animation.gif\n"
    assert "1/2" in answer.err
    assert "frames" in answer.err
    assert drawn == []
    assert (
        dyn("plot", "here", "--animate", "--panel", "loss").out
        == "here/plots/loss.png\nhere/plots/animation.gif\n"
    )
    assert drawn == [("loss", None)]


def test_several_runs_in_one_picture(dyn, place):
    for k in range(2):
        dyn(
            "train",
            "toy.yaml",
            "--seed",
            k,
            "--set",
            "record.measures=[sharpness, weight_norm]",
            "--out",
            f"run{k}",
        )
    dyn("train", "toy.yaml", "--set", "record.measures=[weight_norm]", "--out", "other")
    answer = dyn("plot", "run0", "run1", "--panel", "loss", "--panel", "sharpness", "--json")
    assert (answer.code, answer.err, answer.json["runs"]) == (0, "", ["run0", "run1"])
    assert [Path(file).parent.name for file in answer.json["files"]] == ["plots", "plots"]
    assert len(dyn("plot", "run0", "run1", "--out", "there").out.split()) == 3
    found = [
        panel["name"] for panel in dyn("plot", "run0", "other", "run1", "--list", "--json").json
    ]
    assert found == ["loss", "weight_norm"]
    answer = dyn("plot", "run0", "other", "--panel", "sharpness")
    told = "no picture 'sharpness' of these; there are loss, weight_norm; --y draws any quantity"
    assert (answer.code, answer.err) == (2, f"Error: {told}\n")


def test_a_picture_by_options_and_by_a_file(dyn, place):
    dyn("train", "toy.yaml", "--set", "record.measures=[weight_norm]", "--out", "run")
    asked = ["plot", "run", "--y", "weight_norm", "--y", "loss", "--facet", "quantity"]
    answer = dyn(*asked, "--label", "loss=error", "--size", "4x2", "--out", "both.pdf")
    assert (answer.code, answer.out, answer.err) == (0, "both.pdf\n", "")
    (place / "picture.yaml").write_text("{runs: run, y: [weight_norm, loss], x: loss}")
    assert dyn("plot", "picture.yaml", "--out", "file.png").out == "file.png\n"
    for wrong, told in (
        (["run", "--y", "los"], "no quantity 'los' here (did you mean 'loss'?)"),
        (["run", "--where", "seed=0"], "where goes with a picture: say what is on y"),
        (["run", "--y", "loss", "--panel", "loss"], "leave one"),
        (["run", "--y", "loss", "--size", "big"], "--size 'big': give column, page"),
        (["run", "--out", "all.png"], "7 pictures do not fit in all.png"),
    ):
        answer = dyn("plot", *wrong)
        assert (answer.code, told in answer.err) == (2, True)


def test_nothing_is_drawn_through_a_link(dyn, place):
    """Pictures of a run would lie among those of another."""
    for seed in (0, 1):
        assert dyn("train", "toy.yaml", "--seed", seed, "--out", f"run{seed}", "-q").code == 0
    (place / "run0/plots").mkdir()
    (place / "run1/plots").symlink_to(place / "run0/plots")
    for command in (["plot", "run1", "--panel", "loss"], ["plot", "run1", "--animate"]):
        answer = dyn(*command)
        assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
        assert "run1/plots is a link, and dyn does not write through links" in answer.err
    with pytest.raises(UsageError, match="is a link"):
        api.animate("run1")
    assert list((place / "run0/plots").iterdir()) == []
    assert dyn("plot", "run1", "--panel", "loss", "--out", "run1/plots").code == 0
