"""MNIST and CIFAR-10 from small files of their published form: downloaded from a local server,
added, damaged, read.
"""

import gc
import gzip
import hashlib
import http.server
import io
import tarfile
import threading
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli import add_data, fetch_data, train
from dynamics_cli.datasets import images
from dynamics_cli.datasets.files import cifar10, mnist, store
from dynamics_cli.datasets.files.store import Original
from dynamics_cli.errors import DataMissingError, InputError, RunError, UsageError
from dynamics_cli.kinds import Streams

from .build_subset import build_subset

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""pooch leaves the answers of failed requests open."""
RNG = np.random.default_rng(0)
BATCHES = {
    name: np.column_stack(
        [np.repeat(np.arange(10)[::-1], 2), RNG.integers(0, 256, (20, 3072))]
    ).astype(np.uint8)
    for names in cifar10.MEMBERS.values()
    for name in names
}
DIGITS = {
    name: RNG.integers(0, 256, (n, 28, 28), dtype=np.uint8)
    if "images" in name
    else np.arange(n, dtype=np.uint8) % 10
    for part, n in (("train", 60), ("test", 20))
    for name in mnist.FILES[part]
}


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def tar(batches):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, batch in batches.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = batch.size
            archive.addfile(member, io.BytesIO(batch.tobytes()))
    return stream.getvalue()


def original(name, contents, page):
    return Original(name, hashlib.sha256(contents).hexdigest(), len(contents), page != contents)


CONTENTS = {name: idx(array) for name, array in DIGITS.items()} | {
    cifar10.CIFAR10.files[0].name: tar(BATCHES)
}
PAGES = {
    f"{name}.gz" if "idx" in name else name: gzip.compress(c) if "idx" in name else c
    for name, c in CONTENTS.items()
}
ORIGINALS = [
    original(name, c, page)
    for (name, c), page in zip(CONTENTS.items(), PAGES.values(), strict=True)
]


@pytest.fixture(scope="module")
def started():
    """The address of a server on this machine, its pages, and the names that it was asked for."""
    pages = {}
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path.rpartition("/")[2])
            if (page := pages.get(asked[-1])) is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format, *args):
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}/files", pages, asked
        made.shutdown()
        thread.join()
    gc.collect()


@pytest.fixture
def server(started, monkeypatch):
    """The server, as it is at first."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    _, pages, asked = started
    pages.clear()
    pages.update(PAGES)
    asked.clear()
    return started


@pytest.fixture(autouse=True)
def small(server, monkeypatch):
    """Replace the published files by small ones on a local server."""
    sets = (
        replace(mnist.MNIST, files=ORIGINALS[:4], url=server[0]),
        replace(cifar10.CIFAR10, files=ORIGINALS[4:]),
    )
    monkeypatch.setattr(mnist, "MNIST", sets[0])
    monkeypatch.setattr(cifar10, "CIFAR10", replace(sets[1], url=server[0]))


def published(name):
    found = {"mnist": mnist.MNIST, "cifar10": cifar10.CIFAR10}[name]
    return found


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_files_are_downloaded_once_and_read(name, server, data_home):
    one = published(name)
    asked = server[2]
    assert fetch_data(name) == fetch_data(name) == one.directory == data_home / name
    assert asked == [file.served for file in one.files]
    assert {path.name: path.read_bytes() for path in one.directory.iterdir()} == {
        file.name: CONTENTS[file.name] for file in one.files
    }
    (one.directory / one.files[-1].name).unlink()
    fetch_data(name)  # what is missing only
    assert asked[len(one.files) :] == [one.files[-1].served]


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
@pytest.mark.parametrize(
    ("page", "told"),
    [(b"<html>log in</html>", "do not match"), (bytes(2**21), "do not match"), (None, "404")],
)
def test_another_page_is_refused(page, told, name, server):
    one = published(name)
    pages = server[1]
    pages.pop(one.files[0].served)
    if page is not None:
        pages[one.files[0].served] = page
    with pytest.raises(
        DataMissingError, match=f"could not be downloaded: .*{told}.*`dyn data add {name} PATH`"
    ) as caught:
        fetch_data(name)
    assert caught.value.exit_code == 4
    assert list(one.directory.iterdir()) == []


def test_a_server_that_is_down_and_a_disk_that_is_full(server, monkeypatch):
    down = replace(mnist.MNIST, url="http://127.0.0.1:9")
    with pytest.raises(DataMissingError, match="Connection refused"):
        down.fetch()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.files, "sync", full)
    with pytest.raises(RunError, match="disk full while writing"):
        fetch_data("mnist")
    monkeypatch.setenv("DYN_DATA", f"{__file__}/below")
    with pytest.raises(RunError, match="set DYN_DATA to a directory that can be written"):
        fetch_data("mnist")


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
@pytest.mark.parametrize("served", [False, True])
def test_files_of_a_user_are_added(served, name, tmp_path):
    one = published(name)
    for file in one.files:
        kept, contents = (
            (file.served, PAGES[file.served]) if served else (file.name, CONTENTS[file.name])
        )
        (tmp_path / kept).write_bytes(contents)
    assert add_data(name, tmp_path) == one.directory
    assert one.read([file.name for file in one.files]) == [
        CONTENTS[file.name] for file in one.files
    ]
    if name == "cifar10":
        assert add_data(name, tmp_path / one.files[0].name) == one.directory
    place = one.directory / one.files[0].name
    place.write_bytes(b"mine")
    with pytest.raises(UsageError, match="is another file, or damaged: move it away"):
        add_data(name, tmp_path)
    assert place.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda data: data[:-1] + b"\7", "its contents do not match"),
        (lambda data: b"", "do not match"),
        (lambda data: gzip.compress(data)[:-9], "Compressed file ended"),
        (lambda data: gzip.compress(data)[:-8] + bytes(8), "CRC check failed"),
        (lambda data: gzip.compress(bytes(2**26)), "do not match"),
        (None, "holds no t10k-labels-idx1-ubyte or"),
    ],
)
def test_damaged_files_are_not_added(damage, told, tmp_path, data_home):
    for name, contents in list(CONTENTS.items())[:3]:
        (tmp_path / name).write_bytes(contents)
    last = mnist.MNIST.files[3].name  # the last one: nothing of the others may be kept
    if damage is not None:
        (tmp_path / last).write_bytes(damage(CONTENTS[last]))
    with pytest.raises(InputError, match=told):
        add_data("mnist", tmp_path)
    assert not data_home.exists()


def test_files_that_are_lost_or_damaged_are_told(data_home):
    with pytest.raises(
        DataMissingError,
        match="MNIST is not in .*`dyn data fetch mnist`.*`dyn data add mnist PATH`",
    ):
        mnist.load_mnist("full", "train")
    kept = fetch_data("mnist") / mnist.FILES["test"][0]
    kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="t10k-images-idx3-ubyte: its contents do not match"):
        mnist.load_mnist("full", "test")


def test_classes_of_cifar10():
    fetch_data("cifar10")
    data = images.Cifar10(per_class=3, test_per_class=1).samples(Streams(0))
    assert (data.x.shape, data.x_test.shape) == ((30, 3072), (10, 3072))
    assert data.y.tolist() == [k for k in range(10) for _ in range(3)]
    batch = BATCHES["data_batch_1.bin"]
    assert_array_equal(data.x[:2] * 255, batch[batch[:, 0] == 0, 1:])
    with pytest.raises(InputError, match="per_class is 11, there are 10 such images of class 0"):
        images.Cifar10(per_class=11).samples(Streams(0))


def test_the_subset_is_what_was_built(shared, tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("DYN_DATA", str(tmp_path / "home"))
    build_subset(shared / "mnist", tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == mnist.SUBSET.read_bytes()
    add_data("mnist", shared / "mnist")
    for part, count in (("train", 1000), ("test", 200)):
        found, full = (mnist.load_mnist(source, part) for source in ("subset", "full"))
        for digit, pixels in found.items():
            assert_array_equal(pixels, full[digit][:count])


def test_a_residual_network_trains_on_cifar10(tmp_path):
    """In batches, with batch normalisation and measures in both modes."""
    fetch_data("cifar10")
    few = ["dataset.per_class=2", "dataset.test_per_class=1", "architecture.width=4"]
    short = ["optimizer.batch_size=10", "optimizer.epochs=8", "record.snapshots.interval=16"]
    changes = [*few, *short, "record.parameters=all"]
    run = train("examples/resnet", changes, out=tmp_path / "run")
    assert run.losses[0] > 2
    assert run.measures["train_loss_in_training"][-1] < 0.8 * run.losses[0]
    assert run.parameters["norm.running_var"].shape == (2, 4)
    assert run.network(-1)(run.dataset().x).shape == (20, 10)
