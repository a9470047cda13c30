"""Sealed JSON of somebody else, whose checksum is right: each entry in turn holds something odd.

Every reader says so in one line or goes on; it follows no name, and writes nothing elsewhere.
"""

import copy
import shutil
from pathlib import Path

import pytest

import dynamics_cli as api
from dynamics_cli.errors import DynError, UsageError
from dynamics_cli.reproduction.document import verify_figure
from dynamics_cli.runs.store import manifest
from dynamics_cli.runs.store.sealed import read_sealed, seal

from .conftest import dyn, tree

CORPUS = Path(__file__).parents[1] / "corpus/format-1"
DELETED = object()
NUMBERS = (True, -1, 10**9, 10**400, 1e300)
ODD = (*NUMBERS, None, "x", "../../secret", "a\0b", "\ud800", [], [1], {}, DELETED)
"""Values in the place of an entry; the absolute name of a file is added."""
SECRET = "SECRET"
some = pytest.mark.parametrize(
    "every", [101, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"]
)
"""One in `every` pairs of an entry and an odd value."""


def places(content, *above):
    """Yield the place of each entry; of a list that of the first, since others are alike."""
    entries = []
    if isinstance(content, dict):
        entries = [*content.items()]
    elif isinstance(content, list):
        entries = [*enumerate(content)][:1]
    for key, value in entries:
        yield (*above, key)
        yield from places(value, *above, key)


def odd_documents(good, secret, every):
    """Yield what is odd, and the sealed file."""
    content = {key: value for key, value in good.items() if key != "format"}
    pairs = [(place, value) for place in places(content) for value in (*ODD, str(secret))]
    for place, value in pairs[::every]:
        changed = copy.deepcopy(content)
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        if value is DELETED:
            del inner[place[-1]]
        else:
            inner[place[-1]] = value
        yield (place, value), seal(changed, indent=None)


def failures(what, *readers):
    """Call readers, which may only refuse, in one line; return what else they raise."""
    wrong = []
    for reader in readers:
        told = ""
        try:
            reader()
        except DynError as error:
            told = str(error)
        except Exception as error:
            wrong.append(f"{what}: {error!r}")
        if "\n" in told:
            wrong.append(f"{what}: {told}")
    return wrong


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "secret"
    file.write_text(f"# printed: {SECRET}\n{SECRET}\n")
    return file


@some
@pytest.mark.parametrize("ending", ["", ".audit", ".seeds"])
def test_the_json_of_a_figure(every, ending, place, secret, tmp_path):
    figures = place / "outputs/figures"
    shutil.copytree(CORPUS / "figures", figures)
    figure = figures / "boursier2022-fig2.json"
    document = read_sealed(figure)
    claims = document["claims"]
    if ending == ".seeds":
        per_seed = [{key: claims[0][key] for key in ("measured", "verdict", "low", "high")}] * 4
        over = [{**claim, "per_seed": per_seed} for claim in claims]
        figure.with_suffix(".seeds.json").write_bytes(seal({**document, "claims": over}))
    file = figure.with_suffix(f"{ending}.json")
    site = tmp_path / "deep/deep/site"
    readers = (
        lambda: verify_figure(figure, lambda run: []),
        lambda: api.page(figure).html(),
        lambda: api.site("boursier2022", site),
    )
    assert failures("nothing", *readers) == []
    assert (site / "index.html").is_file()
    wrong = []
    for what, sealed in odd_documents(read_sealed(file), secret, every):
        file.write_bytes(sealed)
        shutil.rmtree(tmp_path / "deep")
        site.mkdir(parents=True)
        before = tree(tmp_path)
        wrong += failures(what, *readers)
        made = tree(tmp_path) - before
        wrong += [f"{what}: writes {name}" for name in made if "deep/deep/site" not in name]
        published = [path for path in site.rglob("*.*") if path.is_file()]
        wrong += [
            f"{what}: in {path}" for path in published if SECRET.encode() in path.read_bytes()
        ]
    assert wrong == []


def drawn(sweep):
    dyn("plot", sweep, "--out", "pictures", "--format", "svg")


OTHERS = {
    "recorded": ("run.json", lambda run: api.load_run(run).losses),
    "sweep": ("sweep.json", drawn),
}
"""Folder of the corpus -> its file, and a further reader."""


@some
@pytest.mark.parametrize("what", OTHERS)
def test_the_json_of_a_run_and_of_a_sweep(what, every, place, secret, tmp_path):
    name, further = OTHERS[what]
    folder = Path(shutil.copytree(CORPUS / what, place / what))
    readers = (
        lambda: api.verify(folder),
        lambda: api.page(folder).html(),
        lambda: api.export(folder, place / "table.csv"),
        lambda: dyn("show", folder),
        lambda: further(folder),
    )
    assert failures("nothing", *readers) == []
    before = tree(tmp_path)
    wrong = []
    for change, sealed in odd_documents(read_sealed(folder / name), secret, every):
        (folder / name).write_bytes(sealed)
        wrong += failures(change, *readers)
    assert wrong == []
    made = tree(tmp_path) - before
    assert [name for name in made if not name.startswith("place/pictures/")] == []


LINES = (b"", b"\n", b"\xff", b'{"name":', b"[" * 10**6, b"9" * 10**5, b'{"name": 1}', b"null")


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_the_manifest_of_a_folder(line, place):
    """Odd lines in it list nothing; a file that does not begin as one is somebody else's."""
    (file,) = manifest.write_listed(place, {"mine.svg": b"1"})
    listed = file.with_name(manifest.MANIFEST)
    before = listed.read_bytes()
    listed.write_bytes(before + b"\n" + line)
    manifest.write_listed(place, {"mine.svg": b"2"})
    assert file.read_bytes() == b"2"
    listed.write_bytes(b"x" + line + before)
    with pytest.raises(UsageError, match="dyn did not write it so"):
        manifest.write_listed(place, {"mine.svg": b"3"})
    file.write_bytes(b"mine")
    listed.write_bytes(b'\n{"na' + before)  # cut at its first byte
    with pytest.raises(UsageError, match=r"mine\.svg is there already"):
        manifest.write_listed(place, {"mine.svg": b"3"})
    assert file.read_bytes() == b"mine"
