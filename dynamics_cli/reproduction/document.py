"""The JSON beside a figure: its claims, seals of its files and runs; and checking all of them."""

from __future__ import annotations

import errno
import hashlib
import os
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from dynamics_cli._bundled import CONFIGS, bundled_configs
from dynamics_cli.errors import RunError
from dynamics_cli.reproduction import catalogue
from dynamics_cli.reproduction.audits import Audit, read_audit
from dynamics_cli.reproduction.claims import ClaimForm, ClaimOverSeeds
from dynamics_cli.reproduction.obtain import ObtainedRun
from dynamics_cli.reproduction.settings import named
from dynamics_cli.runs.code import Code, in_words
from dynamics_cli.runs.errors import CorruptRunError, unreadable_as_corrupt
from dynamics_cli.runs.find import runs_below
from dynamics_cli.runs.info import read_info
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files, layout
from dynamics_cli.runs.store.layout import outputs_root
from dynamics_cli.runs.store.locks import is_locked
from dynamics_cli.runs.store.sealed import FileName, read_form, seal
from dynamics_cli.runs.verify import Fault, faults_of_copies, verify_run
from dynamics_cli.sweeps.directory import is_sweep, read_sweep, verify_sweep
from dynamics_cli.sweeps.find import (
    is_there,
    open_run,
    run_directory,
    split_number,
    sweep_directory,
)
from dynamics_cli.text import Table

AUDIT = ".audit"
SEEDS = ".seeds"
"""Stand before `.json` in the names of a table of nulls, and of claims over seeds."""
OTHER_RUNS = "it was made of other runs than the figure, or has other claims"


class FigureRun(BaseModel):
    """A run of a figure; its directory is looked at, and nothing is written there."""

    role: str
    config: str
    overrides: list[str] = []
    replicas: Annotated[int, Field(ge=1)] = 1
    seed: int
    path: str
    """Relative to the folder of the figure where both are in one folder that may move."""
    replica: int | None = None
    hash: str | None
    device: str | None = None
    backend: str | None = None

    @field_validator("path")
    @classmethod
    def _is_path(cls, path: str) -> str:
        if "\0" in path:
            raise ValueError(f"{path!r} is no path")
        return path


class _Way(BaseModel):
    """How a run was obtained, which differs from time to time for equal runs."""

    role: str
    reused: bool
    seconds: float


class FigureProvenance(BaseModel):
    """Times and versions of a figure, and how its runs were obtained, in their order."""

    started: str
    versions: dict[str, str]
    commit: str | None = None
    platform: str | None = None
    threads: int | None = None
    code: Code = Code()
    seconds: int | float | None = None
    obtained: list[_Way] = []


class FigureDocument(BaseModel):
    """The JSON of a figure, or of its claims over seeds."""

    figure: FileName
    paper: str = ""
    preset: str
    overrides: list[str]
    provenance: FigureProvenance
    seeds: int = 1
    diverged: list[int] = []
    """Seeds of runs that diverged."""
    title: str = ""
    caption: str = ""
    numbers: dict[str, float | None] = {}
    claims: list[ClaimForm]
    files: list[FileName]
    sha256: dict[FileName, str]
    runs: list[FigureRun]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.files != [*self.sha256]:
            raise ValueError("files: each needs a checksum")
        return self

    @property
    def command(self) -> str:
        """The command that makes the figure again."""
        return command(self.figure, self.preset, self.overrides)

    @property
    def over_seeds(self) -> list[ClaimOverSeeds]:
        """Its claims as each seed gave them."""
        return [ClaimOverSeeds.of_file(claim) for claim in self.claims]

    def as_dict(self) -> dict[str, Any]:
        """Return the entries that were given, or read."""
        return self.model_dump(exclude_unset=True, by_alias=True)


def figures_folder(out: str | Path | None = None) -> Path:
    """Return the folder of figures, by default below the root of outputs."""
    if out is None:
        return outputs_root() / "figures"
    return Path(out)


def beside(path: Path, what: str) -> Path:
    """Return the file beside a figure's JSON that holds what stands before `.json` in its name."""
    return path.with_name(f"{path.name.removesuffix('.json')}{what}.json")


def document_of(
    about: Mapping[str, Any],
    pictures: Mapping[str, bytes],
    runs: Sequence[ObtainedRun],
    folder: Path,
) -> bytes:
    """Return the JSON of a figure that is written into a folder with its other files, by name.

    `about` describes the figure. Added are the SHA-256 of the files, the runs with their identity,
    and last a checksum of the whole. Times and versions stand under `provenance`.
    """
    entries = [run.as_dict() for run in runs]
    places = [{"path": _place(run.run.path, folder)} for run in runs]
    document = {
        **about,
        "provenance": {**about["provenance"], "obtained": entries},
        "files": list(pictures),
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in pictures.items()},
        "runs": [{**entry, **place} for entry, place in zip(entries, places, strict=True)],
    }
    return seal(FigureDocument.model_validate(document).as_dict())


def read_document(path: Path) -> FigureDocument:
    """Read the JSON of a figure.

    Raises:
        CorruptRunError: it is missing, changed, or not the JSON of a figure.
        RunError: a later version of dyn wrote it.
    """
    with unreadable_as_corrupt(path):
        return read_form(path, FigureDocument)


def command(name: str, preset: str = "default", overrides: Sequence[str] = ()) -> str:
    """Return the command that makes a figure, or a variant of one, again."""
    figure = catalogue.figure_names().get(name, name)
    words = ["dyn", *catalogue.loading(figure), "reproduce", figure]
    if name != figure:
        words += ["--variant", name.removeprefix(f"{figure}-")]
    if preset == "full":
        words += ["--preset", "full"]
    for change in overrides:
        words += ["--set", change]
    return shlex.join(words)


def config_files(document: FigureDocument) -> dict[str, Path]:
    """Return the files of a figure's configs by the names in its JSON.

    A config is one of the bundled papers, or one that the figure's own module names; without that
    module it has no file.
    """
    known = {path.relative_to(CONFIGS).as_posix(): path for path in bundled_configs().values()}
    name = document.figure
    figure_id = catalogue.figure_names().get(name)
    configs = dict.fromkeys(run.config for run in document.runs)
    if figure_id is not None and not configs.keys() <= known.keys():
        figure = catalogue.load_figure(figure_id)
        if name != figure_id:
            figure = figure.as_variant(name.removeprefix(f"{figure_id}-"))
        for run in figure.wanted(document.preset).values():
            # an earlier version wrote the path of the file
            known |= dict.fromkeys([run.config, named(run.config)], CONFIGS / run.config)
    return {config: known[config] for config in configs if config in known}


def file_of(path: Path, document: FigureDocument, name: str) -> bytes:
    """Return the contents of a file of a figure, given its JSON in `path`.

    Raises CorruptRunError: it is not the file that was written with the JSON.
    """
    again = f"`{document.command}` makes it again"
    file = path.parent / name
    try:
        contents = regular(file)
    except OSError as error:
        raise CorruptRunError(file, f"it cannot be read: {error.strerror}", again) from error
    if hashlib.sha256(contents).hexdigest() != document.sha256[name]:
        raise CorruptRunError(file, f"it is not what was written with {path.name}", again)
    return contents


def seeds_of(path: Path, document: FigureDocument) -> list[ClaimOverSeeds]:
    """Return the claims of a figure over seeds, given its JSON; none without any of this figure.

    Raises CorruptRunError: the file of seeds is damaged.
    """
    if not (file := beside(path, SEEDS)).exists():
        return []
    claims = read_document(file).over_seeds
    if [claim.first for claim in claims] != [claim.first for claim in document.over_seeds]:
        return []
    return claims


def audit_belongs(audit: Audit, document: FigureDocument) -> bool:
    """Return whether an audit is of the runs of a figure and of its verdicts, given its JSON.

    An audit of before has no hashes of runs.
    """
    hashes = {run.role: run.hash for run in document.runs}
    verdicts = {claim.id: claim.verdict for claim in audit.claims}
    drawn = [claim for claim in document.claims if claim.kind == "claim"]
    same = verdicts == {claim.id: claim.verdict for claim in drawn}
    return same and audit.hashes in (None, hashes)


def run_path(document_file: Path, path: str) -> Path:
    """Return the directory of a run that a figure's JSON names, relative to where the JSON is."""
    return Path(os.path.normpath(document_file.absolute().parent / path))


def regular(path: Path) -> bytes:
    """Return the contents of a regular file; OSError for a link, a pipe and a device."""
    # a device never ends, and a pipe may never begin
    if not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return files.read(path)


def _place(run: Path, folder: Path) -> str:
    """Return the path of a run, relative to the figure where both are in one folder that may move.

    It is the outputs' root, or the working directory.
    """
    run = run.absolute()
    folder = folder.absolute()
    for root in (outputs_root().absolute(), Path.cwd()):
        if run.is_relative_to(root) and folder.is_relative_to(root):
            return Path(os.path.relpath(run, folder)).as_posix()
    return str(run)


def verify_figure(
    path: str | Path, check_run: Callable[[Path], list[Fault]] = verify_run
) -> list[Fault]:
    """Check every checksum of a figure, given its JSON, and return its faults.

    `check_run` checks a run directory; figures that share runs may hand in a function that
    remembers.
    """
    file = Path(path)
    findings = list(_faults(file, check_run))
    if findings and is_locked(file.parent):
        return [
            Fault(file, "another process is writing figures there, so that it could not be checked")
        ]
    return findings


def _faults(file: Path, check_run: Callable[[Path], list[Fault]]) -> Iterator[Fault]:
    try:
        document = read_document(file)
    except RunError as error:
        yield Fault.of(error, file)
        return
    runs = [*document.runs]
    yield from faults_of_copies(file.parent, document.provenance.code.kept.values())
    for name in document.files:
        try:
            file_of(file, document, name)
        except CorruptRunError as error:
            yield Fault.of(error, file)
    for what in (AUDIT, SEEDS):
        if (extra := beside(file, what)).exists():
            try:
                runs += _runs_beside(file, what, document)
            except RunError as error:
                yield Fault.of(error, extra)
    places = ((run_path(file, run.path), run.hash) for run in runs)
    for directory, identity in dict.fromkeys(places):
        if not directory.exists():
            yield Fault(
                directory, "this run of the figure is not there any more: was it moved or deleted?"
            )
            continue
        yield from check_run(directory)
        with suppress(RunError):  # told above
            if Run(directory).hash != identity:
                yield Fault(
                    directory, "it holds another run than the one that the figure was drawn from"
                )


def _runs_beside(file: Path, what: str, document: FigureDocument) -> list[FigureRun]:
    """Return the runs of the claims over seeds beside a figure; runs of audits are not kept.

    Raises CorruptRunError: the file is damaged, or was made of other runs than the figure.
    """
    extra = beside(file, what)
    figure = document.figure
    if what == AUDIT:
        audit = read_audit(extra)
        if audit is not None and not audit_belongs(audit, document):
            again = f"`dyn audit {figure}` makes it again"
            raise CorruptRunError(extra, OTHER_RUNS, again)
        return []
    if not seeds_of(file, document):
        again = f"`dyn reproduce {figure} --seeds N` makes it again"
        raise CorruptRunError(extra, OTHER_RUNS, again)
    return read_document(extra).runs


def verify(*paths: str | Path) -> Table:
    """Check runs, sweeps and figures against their checksums.

    Every file is read, and each damaged file is named, with its damage and the parts that can
    still be used. The table has a row for each path: `path`, whether it is `intact`, the
    `findings`, and the author's `code` that made it, in words, where it is in a git repository.

    Args:
        paths: the directory or the name of a run or a sweep, or the JSON beside a figure, which
            stands for the pictures and tables that it names and for the runs that it was drawn
            from; by default everything below outputs.

    Raises:
        RunError: there is no such file, nor a run of this name.
    """
    places = [_verified(path) for path in paths] if paths else _everything()
    remembered = cache(verify_run)  # runs that several of them share are checked once

    def check_run(path: Path) -> list[Fault]:
        return remembered(path.absolute())

    def row(path: Path) -> dict[str, Any]:
        code: dict[str, Any] = {}
        if path.name == layout.INFO:
            path = path.parent
        with suppress(RunError):  # told by the findings
            code = _code_of(path)
        if is_sweep(path):
            findings = verify_sweep(path, check_run)
        elif path.is_dir():
            findings = check_run(path)
        else:
            findings = verify_figure(path, check_run)
        return {
            "path": path,
            "intact": not findings,
            "findings": [asdict(finding) for finding in findings],
            "code": in_words(code) if code.get("commit") else "",
        }

    return Table(map(row, places))


def _code_of(path: Path) -> dict[str, Any]:
    """Return the author's code behind a sweep, a run or a figure.

    Raises RunError: it is damaged.
    """
    if is_sweep(path):
        return read_sweep(path).code.model_dump()
    if not path.is_dir():
        return read_document(path).provenance.code.model_dump()
    code: dict[str, Any] = read_info(path).get("provenance", {}).get("code", {})
    return code


def _verified(path: str | Path) -> Path:
    """Return the directory of a run or a sweep, or the JSON file, that `path` stands for."""
    if is_there(path):
        return Path(path)
    text = os.fspath(path)
    if split_number(text)[1] is not None:
        return open_run(text).path
    return sweep_directory(text) or run_directory(text)


def _everything() -> list[Path]:
    root = outputs_root()
    sweeps = [path for path in sorted((root / "sweeps").glob("*")) if is_sweep(path)]
    runs = [
        path for path in runs_below(root) if not any(path.is_relative_to(sweep) for sweep in sweeps)
    ]
    return [*runs, *sweeps, *figures_in(figures_folder())]


def figures_in(folder: str | Path) -> list[Path]:
    """Return the JSON files of the figures in a folder, beside which their pictures may stand."""
    extra = tuple(f"{what}.json" for what in (AUDIT, SEEDS))
    return sorted(file for file in Path(folder).glob("[!.]*.json") if not file.name.endswith(extra))
