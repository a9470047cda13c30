"""Makes the subset of MNIST that comes with dyn; the same images give the same bytes, whatever
compression there is.

python -m tests.datasets.build_subset DIRECTORY_OF_IDX_FILES OUTPUT.npz
"""

import io
import sys
import zipfile
from pathlib import Path

import numpy as np

from dynamics_cli.datasets.files.mnist import FILES, MNIST, values_of


def build_subset(directory, path):
    """Write the subset from the directory of MNIST's four IDX files, gzipped or not."""
    chosen = {}
    contents = {
        file.name: values_of(file.read(MNIST.find(file, directory))) for file in MNIST.files
    }
    for part, count in (("train", 1000), ("test", 200)):
        images, labels = (contents[name] for name in FILES[part])
        chosen[part] = {digit: images[labels == digit][:count] for digit in range(10)}
    write_subset(path, chosen)


def write_subset(path, images):
    """Write images (n, 28, 28), given as `images[part][digit]`."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for part, of_digits in images.items():
            for digit, pixels in of_digits.items():
                flat = pixels.reshape(len(pixels), -1)
                ink = flat > 0
                _write(archive, f"{part}_{digit}_ink", np.packbits(ink, axis=1))
                _write(archive, f"{part}_{digit}_values", flat[ink])


def _write(archive, name, array):
    content = io.BytesIO()
    np.lib.format.write_array(
        content, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False
    )
    entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so that no date is in the file
    entry.create_system = 3  # as Unix says it, on any system
    archive.writestr(entry, content.getvalue())


if __name__ == "__main__":
    build_subset(Path(sys.argv[1]), Path(sys.argv[2]))
