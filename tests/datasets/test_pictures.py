from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from dynamics_cli.datasets.files.pictures import MAX_BYTES, PictureError, open_pictures
from dynamics_cli.errors import InputError
from tests.fuzz.strategies import encrypted

from .conftest import folder_of, zip_of

CONTENTS = {"cat.0.jpg": b"meow", "dog.0.jpg": b"wuff"}


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught, open_pictures(path):
        pass
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_an_archive_and_the_folder_it_unpacks_to(tmp_path: Path) -> None:
    archive, inner = zip_of(tmp_path / "train.zip", CONTENTS), folder_of(tmp_path / "out" / "train", CONTENTS)
    for path, prefix in ((archive, "train/"), (inner, ""), (tmp_path / "out", "")):
        with open_pictures(path) as pictures:
            assert {name: pictures.read(name) for name in pictures.names} == {
                prefix + name: content for name, content in CONTENTS.items()
            }


def test_what_systems_leave_behind_is_passed_over(tmp_path: Path) -> None:
    noise = {".DS_Store": b"", "._cat.0.jpg": b"", "Thumbs.db": b""}
    zip_of(tmp_path / "a.zip", CONTENTS | noise | {"../__MACOSX/x"[3:]: b"", "sub/": b""})
    folder_of(tmp_path / "folder", CONTENTS | noise)
    for path in (tmp_path / "a.zip", tmp_path / "folder"):
        with open_pictures(path) as pictures:
            assert len(pictures.names) == 2


def terabytes(content: bytes) -> bytes:
    start = content.index(b"PK\x01\x02")
    return content[: start + 24] + struct.pack("<I", 2**32 - 2) + content[start + 28 :]


INCOMPLETE = "is neither a folder nor a complete zip archive ("
DAMAGES = [
    *((lambda data, cut=cut: data[:cut], INCOMPLETE) for cut in (0, 10, -1, -30)),
    (encrypted, "'train/cat.0.jpg' is encrypted"),
    (terabytes, "unpacks to more than 2 GiB"),
]


@pytest.mark.parametrize(("damage", "told"), DAMAGES)
def test_damaged_archives_are_refused(damage: Callable[[bytes], bytes], told: str, tmp_path: Path) -> None:
    path = zip_of(tmp_path / "train.zip", CONTENTS)
    path.write_bytes(damage(path.read_bytes()))
    assert told in refusal(path)
    assert f"{INCOMPLETE}there is no such file" in refusal(tmp_path / "nothing")


def test_links_and_folders_in_folders_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "folder", CONTENTS)
    (folder / "cat.1.jpg").symlink_to(folder / "cat.0.jpg")
    assert f"{folder / 'cat.1.jpg'}: is a link or no file" in refusal(folder)
    (folder / "cat.1.jpg").unlink()
    (folder / "more").mkdir()
    assert f"{folder / 'more'}: is a link or no file" in refusal(folder)


def test_large_files_are_not_read(tmp_path: Path) -> None:
    for path in (
        zip_of(tmp_path / "a.zip", {"a": bytes(MAX_BYTES + 1)}, ""),
        folder_of(tmp_path / "b", {"a": bytes(MAX_BYTES + 1)}),
    ):
        with open_pictures(path) as pictures, pytest.raises(PictureError, match=f"has more than {MAX_BYTES} bytes"):
            pictures.read("a")


def test_a_flipped_bit_is_told(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "train.zip", CONTENTS)
    path.write_bytes(path.read_bytes().replace(b"meow", b"meox"))
    with open_pictures(path) as pictures:
        with pytest.raises(PictureError, match="cannot be read: Bad CRC-32"):
            pictures.read("train/cat.0.jpg")
        assert pictures.read("train/dog.0.jpg") == b"wuff"
