"""Archives and folders of pictures, single pictures, and what is remembered of them."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from PIL import Image

from dynamics_cli.datasets.files.dogs_vs_cats import add_dogs_vs_cats, directory, find_place, load_images
from dynamics_cli.datasets.files.pictures import PictureError, decode_jpeg, quiet_pillow
from dynamics_cli.errors import DynError
from tests.fuzz.rooms import Room, refused
from tests.fuzz.strategies import BYTES, damaged, encrypted


def jpeg(seed: int = 0, size: tuple[int, int] = (12, 9), **more: object) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", **more)
    return stream.getvalue()


def zipped(entries: list[tuple[str | zipfile.ZipInfo, bytes]], packing: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", packing) as archive:
        warnings.simplefilter("ignore")
        for name, content in entries:
            archive.writestr(name, content)
    return stream.getvalue()


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = mode << 16
    return made


def exif() -> bytes:
    return b"Exif\0\0MM\0*\0\0\0\x08\0\x02\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\x87\x69\0\x04\0\0\0\x01\0\0\0\x08\0\0\0\0"


CAT, DOG = jpeg(1), jpeg(2, progressive=True)
PETS: list[tuple[str | zipfile.ZipInfo, bytes]] = [("train/cat.0.jpg", CAT), ("train/dog.0.jpg", DOG)]
PICTURES = [CAT, DOG, jpeg(3, exif=exif()), jpeg(4, subsampling=2, comment=b"x" * 50), jpeg(5, size=(1, 1))]
GOOD = [
    zipped(PETS),
    zipped(PETS, zipfile.ZIP_DEFLATED),
    zipped([("cat.0.jpg", CAT), ("dog.0.jpg", DOG), ("__MACOSX/a", b"x")]),
]


def _many(count: int, name: bytes = b"a") -> bytes:
    """Return an archive that lists so many files without holding one."""
    sizes = (0, 0, 0, len(name), 0, 0, 0, 0, 0, 0)  # CRC, packed, unpacked, of the name, ...
    listed = b"PK\x01\x02" + struct.pack("<HHHHHHIIIHHHHHII", 20, 20, 0, 0, 0, 0, *sizes) + name
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count % 65536, count % 65536, count * len(listed), 0, 0)
    return listed * count + end


_NAMES = [
    "../cat.1.jpg", "train/../../cat.1.jpg", "/cat.1.jpg", "//h/cat.1.jpg", "C:cat.1.jpg", "C:/cat.1.jpg",
    "train\\..\\cat.1.jpg", "..", "train/..", ".", "./cat.1.jpg", "train/./cat.1.jpg", "train//cat.1.jpg",
    "train/cat.1.jpg/", "cat.1.jpg\n", "cat.01.jpg", "cat.\u0661.jpg", "CAT.1.JPG", "x" * 60_000, "cat.99999999.jpg",
    "train/train.zip", "train.zip", "~/cat.1.jpg", "cat.1.jpg\0.txt", "nul", "train/cat.1.jpg:x", "\u202egpj.1.tac",
]  # fmt: skip
ARCHIVES = [
    b"", b"PK", b"PK\x05\x06" + bytes(18), zipped([]), *(zipped([*PETS, (name, CAT)]) for name in _NAMES),
    zipped([*PETS, *PETS]),
    *(
        zipped([*PETS, (entry("train/cat.1.jpg", mode), b"/etc/passwd")])
        for mode in (0o120777, 0o060666, 0o010644, 0o140777, 0o040755)
    ),
    *(zipped(PETS, packing) for packing in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)),
    encrypted(GOOD[0]),
    zipped([*PETS, ("train/cat.1.jpg", GOOD[0])]),
    zipped([("train/train.zip", GOOD[0])]),
    zipped([*PETS, ("train/cat.1.jpg", bytes(2**23))], zipfile.ZIP_DEFLATED),
    _many(1000), _many(400_000), _many(1, b""), GOOD[0][:-22] + b"PK\x05\x06" + b"\xff" * 18, GOOD[0] + b"x" * 70_000,
    b"#!/bin/sh\n" + GOOD[0], zipped([("train/cat.0.jpg", b""), ("train/dog.0.jpg", b"")]),
]  # fmt: skip
"""Archives that are none, or that would do harm."""

PLACES = [
    "", "{", "[]", "null", "1", '"x"', "NaN", "[" * 100_000, '{"path": 1}', "{}", "\ud800",
    *(
        json.dumps({"path": path, "key": key, "names": names})
        for path, key, names in (
            ("/nowhere", "a" * 64, ["cat.0.jpg", "dog.0.jpg"]), ("x" * 10_000, "a" * 64, ["cat.0.jpg", "dog.0.jpg"]),
            ("a\0b", "a" * 64, ["cat.0.jpg"]), ("/", "../../../x", ["cat.0.jpg"]), ("/", "a" * 64, "cat.0.jpg"),
            ("/", "a" * 64, {"cat.0.jpg": 1}), ("/", "a" * 64, []), ("/", "a" * 64, [1]), ("/", "a" * 64, 7),
            ("/", 7, ["cat.0.jpg"]), (None, "a" * 64, ["cat.0.jpg"]), ("/", "a" * 64, ["../cat.0.jpg"]),
            ("/dev/zero", "a" * 64, ["cat.0.jpg"]), ("\ud800", "a" * 64, ["cat.0.jpg"]),
        )
    ),
]  # fmt: skip
"""Damaged notes of where the images are."""


FIXED = [
    *(("archive", data) for data in ARCHIVES),
    *(("place", text.encode(errors="surrogatepass")) for text in PLACES),
]


def room(place: Path, patch: pytest.MonkeyPatch) -> Room:
    """Archives, single pictures, notes of where they are and decoded images, well-formed and damaged."""
    archive = place / "train.zip"
    archive.write_bytes(GOOD[0])
    add_dogs_vs_cats(archive)
    load_images(find_place(), 4)
    note = directory() / "place.json"
    (cache,) = (directory() / "cache").glob("*-4-*")
    good_note, cached, inside = note.read_bytes(), cache.read_bytes(), set(place.iterdir())

    def answer(kind: str, data: bytes) -> str:
        if kind == "archive":
            archive.write_bytes(data)
            add_dogs_vs_cats(archive)
        elif kind == "picture":
            with quiet_pillow():
                assert decode_jpeg(data, 8).shape == (8, 8, 3)
        else:
            pets = find_place()
            assert load_images(pets, 4).shape == (len(pets.names), 4, 4, 3)
        return "accepted"

    def look(case: tuple[str, bytes]) -> str:
        kind, data = case
        archive.write_bytes(GOOD[0])
        cache.write_bytes(data if kind == "cache" else cached)
        note.write_bytes(data if kind == "place" else good_note)
        try:
            said = answer(kind, data)
        except DynError as error:
            said = refused(error)
        except PictureError as error:
            said = "refused" if str(error) else "refused without a word"
        assert set(place.iterdir()) == inside
        assert "without" not in said
        return f"{kind}: {said}"

    kinds = {
        "place": damaged([good_note], [*BYTES, b"../", b'"', b"[", b"]", b"1", b"null"]), "cache": damaged([cached]),
        "archive": damaged(GOOD), "picture": damaged(PICTURES),
    }  # fmt: skip
    cases = st.one_of(*(st.tuples(st.just(kind), data) for kind, data in kinds.items()))
    return Room(cases, look, FIXED, seconds=4.0)
