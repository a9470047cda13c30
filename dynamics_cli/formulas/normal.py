"""Normal numbers of NumPy's generators, drawn by compiled code."""

from __future__ import annotations

import numba

from dynamics_cli.formulas import compiling  # noqa: F401 - decides where compiled code is kept


@numba.njit(cache=True, nogil=True)
def fill(generator, numbers):  # type: ignore[no-untyped-def] # numba's types
    """Fill `numbers` (n,) with the standard normal numbers that NumPy would draw next.

    Numba writes NumPy's ziggurat (Marsaglia and Tsang 2000) into the loop, with the same bits;
    NumPy calls it once for each number.
    """
    for k in range(len(numbers)):
        numbers[k] = generator.standard_normal()
