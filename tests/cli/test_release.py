"""A paper of one's own: found in its repository, its tables, and the metadata of its site."""

import json
import re
from pathlib import Path

import pytest

from dynamics_cli.pages.crate import CRATE, WORKFLOW
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.document import command
from dynamics_cli.runs.run import Run


@pytest.mark.usefixtures("kinds_as_before")
def test_a_repository_from_nothing_to_its_site(tmp_path, monkeypatch, dyn):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path / "paper2026" / "outputs"))
    assert dyn("new", "paper", "paper2026").code == 0
    repository = tmp_path / "paper2026"
    monkeypatch.chdir(repository)
    pins = dict(line.split("==") for line in Path("constraints.txt").read_text().splitlines())
    assert pins["numpy"] == __import__("numpy").__version__
    assert not any("+" in number for number in pins.values())

    assert dyn("reproduce", "paper2026", "--strict", "-q").code == 0  # without --with
    assert command("paper2026-fig1") == "dyn reproduce paper2026-fig1"
    document = Path("outputs/figures/paper2026-fig1.json").read_text()
    assert json.loads(document)["runs"][0]["config"] == "paper2026/configs/two_points.yaml"
    assert str(tmp_path) not in document

    assert dyn("audit", "paper2026", "--strict", "-q", "--null", "linear").code == 0
    Path("README.md").write_text("mine\n" + Path("README.md").read_text() + "mine too\n")
    quiet = dyn("page", "paper2026", "-q")
    assert (quiet.code, quiet.err) == (0, "")
    text = Path("README.md").read_text()
    assert text.startswith("mine\n")
    assert text.endswith("mine too\n")
    assert re.search(
        r"\| paper2026-fig1 \| `dyn reproduce paper2026-fig1` \| [\d.]+ \| .*, cpu \| 2 of 2", text
    )
    (directory,) = Path("outputs/runs").iterdir()
    seconds = Run(directory).info["seconds"]
    checklist = Path("CHECKLIST.md").read_text()
    for line in (
        "| paper2026-fig1 | two_points | printed | the data |",
        "| The loss falls to a thousandth | < 0.001 |",
        f"| total | 1 | {seconds:.1f} |",
        "| points | none: drawn by dyn, or written in the config | - |",
        "## What was not reproduced\n\nNothing.",
    ):
        assert line in checklist
    again = [Path(name).read_bytes() for name in ("README.md", "CHECKLIST.md")]
    assert dyn("page", "paper2026", "--site", "site", "-q").code == 0
    assert again == [Path(name).read_bytes() for name in ("README.md", "CHECKLIST.md")]

    crate = pytest.importorskip("rocrate.rocrate").ROCrate("site")
    assert (crate.version, crate.mainEntity.id) == ("1.2", WORKFLOW)
    assert Path("site", WORKFLOW).read_text().splitlines()[1:] == ["dyn reproduce paper2026-fig1"]
    listed = {entity.id for entity in crate.data_entities}
    there = {str(p.relative_to("site")) for p in Path("site").rglob("[!.]*") if p.is_file()}
    assert listed == there - {CRATE}
    profiles = {profile.id: profile.type for profile in crate.root_dataset["conformsTo"]}
    assert "Profile" in profiles["https://w3id.org/ro/wfrun/workflow/0.5"]
    (action,) = crate.get_by_type("CreateAction")
    assert action["instrument"] == crate.mainEntity
    assert action["object"].id == "configs/paper2026/configs/two_points.yaml"
    assert "figures/paper2026-fig1.png" in {one.id for one in action["result"]}
    assert not [
        reference
        for entity in crate.get_entities()
        for reference in re.findall(r"'@id': '(#[^']*)'", str(entity.properties()))
        if crate.dereference(reference) is None
    ]


@pytest.mark.usefixtures("kinds_as_before")
def test_only_a_paper_that_folder_and_command_name_is_loaded(tmp_path, monkeypatch, dyn):
    monkeypatch.chdir(tmp_path)
    Path("evil").mkdir()
    Path("evil/__init__.py").write_text("raise SystemExit('loaded')\n")
    for project in ("[project]", "not TOML", "[project.entry-points.dyn]\nx = 'nowhere'\n"):
        Path("pyproject.toml").write_text(project)
        assert catalogue.paper_here() is None
        assert "no paper 'evil'" in dyn("list", "figures", "--paper", "evil").err
    Path("pyproject.toml").write_text("[project.entry-points.dyn]\nx = 'evil'\n")
    for words in (["list", "papers"], ["list", "figures"], ["config", "check", "evil/x.yaml"]):
        assert "SystemExit" not in dyn(*words).err
    assert "not loaded: evil of this folder" in dyn("list", "papers").err
    for words in (["reproduce", "evil-fig1"], ["list", "figures", "--paper", "evil"]):
        answer = dyn(*words)
        assert answer.code == 3
        assert "SystemExit: loaded" in answer.err
