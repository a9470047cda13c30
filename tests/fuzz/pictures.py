"""Archives and folders of pictures, single pictures, and what is remembered of them."""

from __future__ import annotations

import io
import json
import random
import struct
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from dynamics_cli.datasets.files.dogs_vs_cats import add_dogs_vs_cats, directory, find_place, load_images
from dynamics_cli.datasets.files.pictures import PictureError, decode_jpeg, quiet_pillow
from dynamics_cli.errors import DynError
from tests.fuzz.mutate import BYTES, damage, encrypted
from tests.fuzz.rooms import refused


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


@dataclass(frozen=True)
class Case:
    kind: str
    data: bytes


_FIXED = [
    *(Case("archive", data) for data in ARCHIVES),
    *(Case("place", text.encode(errors="surrogatepass")) for text in PLACES),
]
FIXED = len(_FIXED)


class Room:
    """Archives, pictures and notes, well-formed and damaged."""

    memory = 500 * 10**6
    seconds = 4.0

    def prepare(self, place: Path) -> None:
        self.archive = place / "train.zip"
        self.inside = {path.name for path in place.iterdir()} | {"train.zip", "data"}
        self.place = place
        self.archive.write_bytes(GOOD[0])
        add_dogs_vs_cats(self.archive)
        load_images(find_place(), 4)
        self.note = directory() / "place.json"
        self.good_note = self.note.read_bytes()
        (self.cache,) = (directory() / "cache").glob("*-4-*")
        self.cached = self.cache.read_bytes()

    def case(self, seed: int, i: int) -> Case:
        if i < len(_FIXED):
            return _FIXED[i]
        rng = random.Random(f"{seed}-{i}")
        match rng.randrange(5):
            case 0:
                return Case("place", damage(rng, self.good_note, [*BYTES, b"../", b'"', b"[", b"]", b"1", b"null"]))
            case 1:
                return Case("cache", damage(rng, self.cached))
            case 2:
                return Case("archive", damage(rng, rng.choice(GOOD)))
        return Case("picture", damage(rng, rng.choice(PICTURES)))

    def run(self, case: Case) -> str:
        self.archive.write_bytes(GOOD[0])
        self.cache.write_bytes(case.data if case.kind == "cache" else self.cached)
        self.note.write_bytes(case.data if case.kind == "place" else self.good_note)
        try:
            outcome = self._outcome(case)
        except DynError as error:
            outcome = refused(error)
        except PictureError as error:
            outcome = "refused" if str(error) else "REFUSED WITHOUT A WORD"
        assert {path.name for path in self.place.iterdir()} <= self.inside | {"stderr.txt"}
        assert "WITHOUT" not in outcome
        return f"{case.kind}: {outcome}"

    def _outcome(self, case: Case) -> str:
        if case.kind == "archive":
            self.archive.write_bytes(case.data)
            add_dogs_vs_cats(self.archive)
            return "accepted"
        if case.kind == "picture":
            with quiet_pillow():
                assert decode_jpeg(case.data, 8).shape == (8, 8, 3)
            return "accepted"
        place = find_place()
        assert load_images(place, 4).shape == (len(place.names), 4, 4, 3)
        return "accepted"

    def describe(self, case: Case) -> str:
        return f"{case.kind}: {case.data[:3000]!r}"
