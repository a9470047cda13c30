import re
from pathlib import Path


def test_figures(dyn):
    found = dyn("list", "figures", "--json").json
    assert [set(figure) for figure in found] == [
        {"id", "paper", "title", "seconds", "variants"}
    ] * len(found)
    assert {f"boursier2022-fig{k}" for k in range(1, 8)} <= {figure["id"] for figure in found}
    lines = dyn("list", "figures").out.splitlines()[2:]
    assert [line.split()[0] for line in lines] == [figure["id"] for figure in found]
    first = next(k for k, figure in enumerate(found) if figure["id"] == "boursier2022-fig1")
    assert lines[first].endswith(f"  flow      {found[first]['title']}")
    assert {figure["id"]: figure["variants"] for figure in found}["boursier2022-fig4"] == ["flow"]
    of_paper = dyn("list", "figures", "--paper", "boursier2022", "--json").json
    assert of_paper == [figure for figure in found if figure["paper"] == "boursier2022"]


def test_runs(dyn):
    empty = dyn("list", "runs")
    assert (empty.code, empty.out, empty.err) == (
        0,
        "",
        "there are no such runs below outputs/runs\n",
    )
    assert dyn("list", "runs", "--json").json == []
    path = dyn("train", "toy.yaml", "--json").json["path"]
    (found,) = dyn("list", "runs", "--json").json
    assert (found["path"], found["name"], found["status"], found["iterations"]) == (
        path,
        "toy",
        "complete",
        30,
    )
    line = dyn("list", "runs").out.splitlines()[2]
    assert line.split()[:3] == [f"outputs/runs/{Path(path).name}", "complete", "30"]
    assert dyn("list", "runs", "--status", "interrupted", "--json").json == []
    assert (
        len(dyn("list", "runs", "--status", "interrupted", "--status", "complete", "--json").json)
        == 1
    )


def test_what_is_listed_shown_and_compared_fits_and_breaks_no_number(dyn, monkeypatch):
    points = (
        "dataset={kind: points, x: [[0.123456789], [-0.987654321], [0.5555555]], y: [0.7654321,"
        " -0.2, 1.25e-7]}"
    )
    trained = [
        dyn(
            "train",
            "toy.yaml",
            "-q",
            "--out",
            f"outputs/runs/{name}",
            "--set",
            points,
            f"--seed={k}",
        )
        for k, name in enumerate("ab")
    ]
    grid = "optimizer.lr=0.01,0.012345678,0.0098765432,0.0123456,0.03456789,0.0456789"
    swept = [
        dyn(
            "sweep", "toy.yaml", "-q", "--grid", grid, "--seeds", k, "--out", f"outputs/sweeps/s{k}"
        )
        for k in (1, 2)
    ]
    assert {answer.code for answer in (*trained, *swept)} == {0}
    listed = ("figures", "papers", "configs", "kinds", "runs", "sweeps")
    shown = ["show a", "show s1", "show toy.yaml", "compare a b"]
    calls = [
        *(f"list {one}".split() for one in listed),
        *map(str.split, shown),
        ["show", "toy.yaml", "--set", points],
    ]
    for call in calls:
        answers = []
        for width in ("100000", "60"):
            monkeypatch.setenv("COLUMNS", width)
            answers.append(dyn(*call))
        assert [answer.code for answer in answers] == [0, 0]
        assert max(map(len, answers[1].out.splitlines())) <= 60, call
        texts = [re.sub(r"[0-9.]+ s ago", "", answer.out) for answer in answers]
        whole, fitted = (set(re.findall(r"[0-9][0-9.e+-]*", text)) for text in texts)
        assert fitted == whole, call
