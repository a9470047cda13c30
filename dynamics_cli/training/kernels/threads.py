"""The threads of the parallel kernels."""

from __future__ import annotations

import numba
import torch


def start_threads() -> None:
    """Start numba's threads, and leave PyTorch with as many as it has.

    Numba sets the number of threads of the whole process's OpenMP when it starts its own. PyTorch asks the same OpenMP:
    with `OMP_NUM_THREADS=1`, what is trained later in this process would take two threads, and have other bits than in
    a process of its own.
    """
    threads = torch.get_num_threads()
    numba.get_num_threads()  # starts them
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
