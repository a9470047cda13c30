"""Files that earlier versions wrote: all of them are read for ever."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import dynamics_cli
from dynamics_cli.errors import RunError
from dynamics_cli.reproduction.audits import read_audit
from dynamics_cli.reproduction.document import read_document
from dynamics_cli.runs.info import read_info
from dynamics_cli.runs.store import sealed
from dynamics_cli.runs.store.checkpoints import load_checkpoint
from dynamics_cli.runs.verify import verify_run
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.sweeps.directory import Sweep

CORPUS = Path(__file__).parent.parent / "corpus"
FORMATS = sorted(path.parent for path in CORPUS.glob("*/made.json"))
RUNS = {
    "complete": "complete",
    "flow": "complete",
    "torch": "complete",
    "diverged": "diverged",
    "interrupted": "interrupted",
    "recorded": "complete",
}
"""The runs of each corpus, and how they ended."""


@pytest.fixture(params=FORMATS, ids=lambda path: path.name)
def corpus(request, tmp_path):
    """Return a copy of the files of one format: whoever reads them may write beside them."""
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


def test_each_format_has_a_corpus():
    assert [path.name for path in FORMATS] == [f"format-{k + 1}" for k in range(sealed.FORMAT)]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_opened_shown_verified_drawn_and_exported(corpus, name, dyn):
    path = corpus / name
    run = dynamics_cli.load_run(path)
    assert run.status == RUNS[name]
    assert len(run.losses) == len(run.loss_iterations) > 0
    assert np.isfinite(run.losses[0]).all()
    assert all(len(values) for values in run.parameters.values())

    assert RUNS[name] in dyn("show", path).out
    assert "intact" in dyn("verify", path).out
    assert dyn("plot", path, "--panel", "loss", "--out", "pictures").code == 0  # the page has all
    assert dyn("page", path, "--output", "page.html").code == 0
    assert dyn("export", path, "table.csv").code == 0


def test_a_sweep_is_opened_drawn_and_verified(corpus, dyn):
    path = corpus / "sweep"
    assert len(Sweep(path).rows) == 4
    assert dynamics_cli.load_run(path / "batches" / "000000").losses.shape == (9, 4)
    assert "4 of 4" in dyn("show", path).out
    assert "intact" in dyn("verify", path).out
    assert dyn("plot", path, "--out", "pictures").code == 0
    assert dyn("page", path, "--output", "page.html").code == 0


def test_a_figure_is_opened_with_its_audit_and_drawn_on_a_page(corpus, dyn):
    """Its runs were not kept: `verify` would ask for them."""
    (figure,) = (corpus / "figures").glob("*-fig?.json")
    assert read_document(figure).claims
    assert read_audit(figure.with_suffix(".audit.json")).figure == figure.stem
    assert dyn("page", figure, "--output", "page.html").code == 0


def test_an_interrupted_run_is_continued_in_the_format_of_today(corpus):
    """Its bits may differ from those of its first part: `NUMERICS_VERSION` says so."""
    info = read_info(corpus / "interrupted")
    checkpoint = load_checkpoint(corpus / "interrupted", info)
    assert checkpoint.meta["iteration"] > 0
    writer = RunWriter.reopen(corpus / "interrupted")
    assert writer.resumed_at == checkpoint.meta["iteration"]
    assert read_info(corpus / "interrupted")["format"] == sealed.FORMAT


def test_a_later_format_reads_this_one(corpus, monkeypatch):
    """As if the next format called `final_loss` otherwise, and counted iterations from 1."""

    def read_this(content):
        content = dict(content)
        content["messages"] = [*content["messages"], f"of format {content['format']}"]
        return content

    monkeypatch.setattr(sealed, "READERS", {**sealed.READERS, sealed.FORMAT: read_this})
    monkeypatch.setattr(sealed, "FORMAT", sealed.FORMAT + 1)
    before = (corpus / "complete" / "run.json").read_bytes()
    run = dynamics_cli.load_run(corpus / "complete")
    assert run.info["messages"] == [f"of format {json.loads(before)['format']}"]
    assert run.info["format"] == sealed.FORMAT
    assert verify_run(corpus / "complete") == []
    assert (corpus / "complete" / "run.json").read_bytes() == before  # nothing is converted


def test_a_file_of_a_later_version_is_refused(corpus, monkeypatch):
    monkeypatch.setattr(sealed, "FORMAT", 0)
    with pytest.raises(RunError, match="was written by a later version of dyn"):
        dynamics_cli.load_run(corpus / "complete")
