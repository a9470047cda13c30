"""The author's code behind runs, in five situations, without names of a machine or a user."""

import importlib
import os
import platform
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import dynamics_cli as dyn
from dynamics_cli.runs import code as module
from dynamics_cli.runs.code import CHECKOUT, DIFF, code, commit
from dynamics_cli.runs.info import read_info

MAIN = "# by janedoe for {home} on host-of-somebody\nimport loop\n"
LOOP = """\
import torch
import dynamics_cli as dyn

def record(out):
    x = torch.linspace(-1, 1, 8)[:, None]
    model = torch.nn.Linear(1, 1)
    with dyn.Recorder(out, model, x, x, loss="mse", every=1) as recorder:
        recorder.step()
"""
SMALL = {"optimizer.iterations": 20}


def git(*words, cwd):
    identity = ["-c", "user.name=janedoe", "-c", "user.email=janedoe@example.org"]
    done = subprocess.run(
        ["git", *identity, *words], cwd=cwd, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def author(tmp_path, monkeypatch):
    """A script in a folder of an author's home, as the program at work."""
    folder = tmp_path / "home-of-somebody" / "paper"
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(MAIN.format(home=folder.parent))
    (folder / "loop.py").write_text(LOOP)
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("USER", "janedoe")
    monkeypatch.setattr(platform, "node", lambda: "host-of-somebody")
    monkeypatch.setenv("DYN_OUTPUTS", str(folder / "outputs"))
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(folder / "main.py"), raising=False)
    monkeypatch.setattr(sys, "argv", ["main.py"])
    monkeypatch.setattr(sys, "orig_argv", ["python", str(folder / "main.py"), f"--at={folder}/x"])
    monkeypatch.setattr(module, "SECONDS", 1e-9)
    monkeypatch.delitem(sys.modules, "loop", raising=False)
    return folder


def committed(folder):
    git("init", "-q", cwd=folder)
    git("add", "main.py", "loop.py", cwd=folder)
    git("commit", "-qm", "m", cwd=folder)
    return git("rev-parse", "HEAD", cwd=folder)


def private(folder):
    """Return the files below a folder that hold a name of the author or the machine."""
    words = "janedoe|home-of-somebody|host-of-somebody"
    return [
        file
        for file in folder.rglob("*")
        if file.is_file() and re.search(words, file.read_bytes().decode("latin-1"))
    ]


def test_a_clean_repository_a_changed_one_and_none(author):
    entry, copies = code()
    assert (entry["script"], entry["command"]) == ("main.py", "python main.py --at=x")
    assert entry["packages"]["numpy"] == importlib.import_module("numpy").__version__
    assert "commit" not in entry
    assert [*entry["kept"]] == ["main.py"]
    scrubbed = b"# by USER for ~ on HOST\nimport loop\n"
    assert copies == {f"{entry['kept']['main.py']['copy']}/main.py": scrubbed}

    head = committed(author)
    entry, _ = code()
    assert (entry["commit"], entry["dirty"], [*entry["kept"]]) == (head, False, ["main.py"])

    (author / "loop.py").write_text(LOOP + "# changed\n")
    entry, copies = code(str(author / "loop.py"))
    assert (entry["commit"], entry["dirty"]) == (head, True)
    assert [*entry["kept"]] == ["loop.py", "main.py", DIFF]
    diff = copies[f"{entry['kept'][DIFF]['copy']}/{DIFF}"]
    git("checkout", "-q", "loop.py", cwd=author)
    subprocess.run(["git", "apply"], input=diff, cwd=author, check=True)
    assert (author / "loop.py").read_text() == LOOP + "# changed\n"


def test_the_commit_of_a_folder_without_any(tmp_path, monkeypatch):
    assert commit(tmp_path) is None
    git("init", "-q", cwd=tmp_path)
    assert commit(tmp_path) is None
    git("commit", "-qm", "m", "--allow-empty", cwd=tmp_path)
    assert commit(tmp_path) == git("rev-parse", "HEAD", cwd=tmp_path)
    monkeypatch.setenv("PATH", os.devnull)
    assert commit(tmp_path) is None


def test_long_differences_are_told_and_not_kept(author, monkeypatch):
    committed(author)
    (author / "loop.py").write_text("#" * 3000)
    monkeypatch.setattr(module, "MOST_BYTES", 2000)
    entry, copies = code()
    assert [*entry["kept"]] == ["main.py"]
    assert entry["left_out"][DIFF] > 3000
    assert len(copies) == 1


def test_the_checkout_of_dyn_is_no_repository_of_an_author(monkeypatch):
    monkeypatch.chdir(CHECKOUT / "tests")
    entry, _ = code()
    assert "commit" not in entry


def test_runs_loops_sweeps_and_figures_keep_it_without_names(author):
    head = committed(author)
    (author / "main.py").write_text(MAIN.format(home="here, again janedoe"))
    dyn.train("boursier2022/orthogonal", SMALL, out="outputs/runs/one")
    importlib.import_module("loop").record("outputs/runs/loop")
    dyn.sweep("boursier2022/orthogonal", {"seed": [1, 2]}, overrides=SMALL, out="outputs/sweeps/s")
    dyn.reproduce("boursier2022-fig2", overrides=SMALL, out="elsewhere")

    assert read_info(Path("outputs/runs/loop"))["provenance"]["code"]["kept"].keys() == {
        *("main.py", "loop.py", DIFF)
    }
    (job,) = Path("outputs/sweeps/s/batches").iterdir()
    assert read_info(job)["provenance"]["code"].keys() == {"commit", "dirty", "command"}
    verified = dyn.verify(
        "outputs/runs/one", "outputs/sweeps/s", "elsewhere/boursier2022-fig2.json"
    )
    assert {row["intact"] for row in verified} == {True}
    said = f"python main.py --at=x, main.py, commit {head} and uncommitted changes"
    assert {row["code"] for row in verified} == {said}
    assert head in dyn.page("outputs/runs/one").html()
    assert head in dyn.page("outputs/sweeps/s").html()
    assert head in dyn.page("elsewhere/boursier2022-fig2.json").html()
    assert private(author / "outputs") == private(author / "elsewhere") == []

    git("checkout", "-q", "main.py", cwd=author)
    dyn.train("boursier2022/orthogonal", SMALL, out="outputs/runs/two")
    compared = dyn.compare("one", "two")
    assert {*compared.code} == {"dirty", "kept.main.py.sha256", f"kept.{DIFF}.sha256"}
    assert compared.code["dirty"] == (True, False)
    assert compared.loss.relative == 0

    (copy,) = Path("outputs/runs/two/parts").glob("main-*/main.py")
    copy.write_text("# changed\n")
    (row,) = dyn.verify("outputs/runs/two")
    assert "not the one that the run used" in row["findings"][0]["problem"]


@pytest.mark.docs
def test_a_notebook(author):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    head = committed(author)
    cells = [
        "import dynamics_cli as dyn",
        f"dyn.train('boursier2022/orthogonal', {SMALL}, out='run')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    nbclient.NotebookClient(notebook, timeout=180).execute(cwd=str(author))
    entry = read_info(author / "run")["provenance"]["code"]
    assert (entry["script"], entry["commit"], entry["dirty"]) == ("notebook.py", head, False)
    assert "command" not in entry
    (copy,) = (author / "run" / "parts").glob("notebook-*/notebook.py")
    assert re.findall(r"# In \[\d\]\n.*\n", copy.read_text()) == [
        f"# In [{k + 1}]\n{cell}\n" for k, cell in enumerate(cells)
    ]
    assert private(author / "run") == []


@pytest.mark.long
def test_an_installed_wheel(author, tmp_path):
    """The repository of the author has the environment in it, in which dyn is installed."""
    head = committed(author)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", tmp_path, CHECKOUT],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(author / ".venv", with_pip=True)
    binaries = author / ".venv" / "bin"
    pip = [binaries / "python", "-m", "pip", "install", "-q", "--no-deps", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    # libraries of the environment of the tests, behind the wheel
    (site,) = (author / ".venv" / "lib").glob("python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    command = [
        binaries / "dyn",
        "train",
        "boursier2022/orthogonal",
        "--set",
        "optimizer.iterations=20",
        "--out",
        f"{author}/run",
        "-q",
    ]
    subprocess.run(
        command,
        check=True,
        capture_output=True,
        cwd=author,
        env={"HOME": str(author.parent), "USER": "janedoe"},
    )
    made = read_info(author / "run")["provenance"]
    assert made["commit"] is None
    assert (made["code"]["commit"], made["code"]["dirty"]) == (head, False)
    assert made["code"]["command"].startswith("dyn train boursier2022/orthogonal --set")
    assert made["code"]["command"].endswith("--out run -q")
    assert "script" not in made["code"]
    assert private(author / "run") == []
