from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from dynamics_cli.datasets.files.pictures import MAX_BYTES, UnreadablePictureError, open_pictures
from dynamics_cli.errors import InputError

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


def test_no_such_place(tmp_path: Path) -> None:
    assert "no such file or folder" in refusal(tmp_path / "nothing")


@pytest.mark.parametrize("cut", [0, 10, -1, -30])
def test_a_truncated_archive(cut: int, tmp_path: Path) -> None:
    path = zip_of(tmp_path / "train.zip", CONTENTS)
    path.write_bytes(path.read_bytes()[:cut])
    assert "is not a complete zip archive" in refusal(path)


@pytest.mark.parametrize(
    "name", ["../cat.0.jpg", "train/../../cat.0.jpg", "/etc/cat.0.jpg", "C:/cat.0.jpg", "train\\..\\cat.0.jpg"]
)
def test_names_that_lead_out_are_refused(name: str, tmp_path: Path) -> None:
    path = zip_of(tmp_path / "train.zip", CONTENTS | {name: b"x"}, prefix="")
    assert f"{name!r} leads out of the archive; the archive is refused" in refusal(path)


def test_a_name_with_nul_is_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "train.zip", {"catX0.jpg": b"x"})
    path.write_bytes(path.read_bytes().replace(b"catX0", b"cat\x000"))
    assert "leads out of the archive" in refusal(path)


@pytest.mark.parametrize("mode", [0o120777, 0o020666, 0o010644])  # a link, a device, a pipe
def test_links_and_devices_in_archives_are_refused(mode: int, tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("train/cat.1.jpg")
    entry.external_attr = mode << 16
    with zipfile.ZipFile(tmp_path / "train.zip", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    assert "'train/cat.1.jpg' is a link or a device" in refusal(tmp_path / "train.zip")


def test_links_and_folders_in_folders_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "folder", CONTENTS)
    (folder / "cat.1.jpg").symlink_to(folder / "cat.0.jpg")
    assert f"{folder / 'cat.1.jpg'}: is a link" in refusal_of(folder)
    (folder / "cat.1.jpg").unlink()
    (folder / "more").mkdir()
    assert f"{folder / 'more'}: is a folder" in refusal_of(folder)


def refusal_of(folder: Path) -> str:
    with pytest.raises(InputError) as caught, open_pictures(folder):
        pass
    return str(caught.value)


def test_a_file_that_is_there_twice(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "train.zip", "w") as archive:
        archive.writestr("train/cat.0.jpg", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("train/cat.0.jpg", b"2")
    assert "'train/cat.0.jpg' is there twice" in refusal(tmp_path / "train.zip")


def test_encrypted_files_are_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "train.zip", CONTENTS)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    assert "is encrypted" in refusal(path)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "train.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train/cat.0.jpg", bytes(MAX_BYTES + 1))
        archive.writestr("train/cat.1.jpg", bytes(2**20))  # a thousand times its packed size
    with open_pictures(tmp_path / "train.zip") as pictures:
        for name, size in (("train/cat.0.jpg", MAX_BYTES + 1), ("train/cat.1.jpg", 2**20)):
            with pytest.raises(UnreadablePictureError, match=f"would unpack to {size} bytes"):
                pictures.read(name)


def test_a_claim_of_terabytes_is_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "train.zip", CONTENTS)
    content = path.read_bytes()
    start = content.index(b"PK\x01\x02")
    path.write_bytes(content[: start + 24] + struct.pack("<I", 2**32 - 2) + content[start + 28 :])
    assert "unpacks to more than 2 GiB" in refusal(path)
    path.write_bytes(content[: start + 20] + struct.pack("<I", 10**6) + content[start + 24 :])
    assert "its files overlap" in refusal(path)


def test_a_flipped_bit_and_a_large_file_are_told(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "train.zip", CONTENTS)
    path.write_bytes(path.read_bytes().replace(b"meow", b"meox"))
    with open_pictures(path) as pictures:
        with pytest.raises(UnreadablePictureError, match="damaged in the archive: Bad CRC-32"):
            pictures.read("train/cat.0.jpg")
        assert pictures.read("train/dog.0.jpg") == b"wuff"
    folder = folder_of(tmp_path / "folder", {"cat.0.jpg": bytes(MAX_BYTES + 1)})
    with open_pictures(folder) as pictures, pytest.raises(UnreadablePictureError, match=f"more than {MAX_BYTES} bytes"):
        pictures.read("cat.0.jpg")
