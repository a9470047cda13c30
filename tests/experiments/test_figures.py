"""Every figure on runs that are really trained: the claims are those committed, and the picture is
drawn of evidence.

`docs/figures` holds the claims of every figure as `dyn reproduce` gave them.
"""

import json
import math
from pathlib import Path

import pytest

from dynamics_cli.reproduction.catalogue import figures, load_figure
from tests.experiments.helpers import check_pure, evidence_of, verdicts

DOCUMENTS = Path(__file__).parents[2] / "docs" / "figures"
if not DOCUMENTS.is_dir():
    pytest.skip("a source archive comes without docs/figures", allow_module_level=True)
QUICK = 3.0
"""Most seconds of figures that are made by default: of each paper the first such figure."""
ALSO = {"boursier2022-fig2", "boursier2022-fig3"}
"""Made by default too: their numbers are those of an independent derivation."""
SLOW = {
    "chizat2019-scaling",
    "cohen2021-momentum",
    "cohen2021-taylor",
    "gromov2023-ipr",
    "gromov2023-phases",
    "woodworth2020-fig3",
}
"""Such figures whose runs take longer where nothing is compiled yet."""
SAME = 2e-3
"""Largest difference of a number that is measured again, over the number or an end of its interval.

On the same machine with the same versions it is 0. Another processor sums products in another
order, which changes the last digits, and training enlarges that: to 5e-4 at most in eleven figures
that are not in `UNSTABLE`, made with kernels for a generic processor on a single thread. Most
intervals are 1 % wide or wider.
"""
UNSTABLE = {
    "andreyev2024-doubled": math.inf,
    "andreyev2024": 0.2,
    "chizat2020-margin": 0.02,
    "cohen2021": 0.2,
    "doshi2023": 0.2,
    "edelman2024-transformer": 0.2,
    "gromov2023": 0.2,
    "liu2023-mnist": 0.2,
    "phuong2021-fig3": 0.2,
    "phuong2021-fig4": 0.2,
    "tachet2018-table2": 0.2,
    "tachet2018-fig5-gan": math.inf,
    "zhang2025-features": 0.05,
}
"""Beginnings of ids -> the same for figures whose training enlarges last digits without end: steps
at the edge of stability, grokking, deep networks of single precision. There the other kernels gave
up to 0.1, and the same verdicts; a spike of andreyev2024-doubled is the largest of a few; of the
GAN even the covered modes depend on the number of threads
(see its notes), and the search for the largest margin of chizat2020 ends 0.4 % apart on one thread
and two. A claim of zhang2025-features measures rounding itself.
"""
ABSENT = {"tachet2018-table2"}
"""Figures whose data nobody may pass on."""


MADE = [listed for listed in figures() if listed.id not in ABSENT]
BY_DEFAULT = {}
for listed in MADE:
    if listed.seconds <= QUICK and listed.id not in SLOW:
        BY_DEFAULT.setdefault(listed.paper, listed.id)


def _marked(figure_id, quick, *more):
    marks = () if quick else pytest.mark.long
    return pytest.param(figure_id, *more, marks=marks, id="-".join([figure_id, *more]))


@pytest.mark.parametrize(
    "figure_id",
    [_marked(one.id, one.id in {*BY_DEFAULT.values(), *ALSO}) for one in MADE],
)
def test_claims_are_those_committed_and_the_picture_is_drawn(figure_id):
    figure = load_figure(figure_id)
    evidence = evidence_of(figure)
    claims = figure.claims(evidence)
    committed = json.loads((DOCUMENTS / f"{figure_id}.json").read_text())["claims"]
    tolerance = next(
        (share for name, share in UNSTABLE.items() if figure_id.startswith(name)), SAME
    )
    found = differences(committed, [one.model_dump() for one in claims], tolerance)
    assert not found, f"stale: dyn reproduce {figure_id}, and import again ({'; '.join(found)})"
    if figure.numbers is not None:
        assert all(math.isfinite(value) for value in figure.numbers(evidence).values())
    check_pure(figure, evidence)


def differences(kept, fresh, tolerance=SAME):
    """Return how the claims of a figure differ from those that are committed, in a line each."""
    old, new = ({one["id"]: one for one in claims} for claims in (kept, fresh))
    if list(old) != list(new):
        return [f"other claims: {', '.join(sorted(set(old) ^ set(new))) or 'their order'}"]
    lines = []
    for key, one in old.items():
        for entry in ("kind", "verdict", "statement", "source"):
            if one[entry] != new[key][entry]:
                lines.append(f"{key}: {entry} {one[entry]!r} -> {new[key][entry]!r}")
        for entry in ("low", "high", "measured"):
            if not close(one[entry], new[key][entry], tolerance, one["low"], one["high"]):
                lines.append(f"{key}: {entry} {one[entry]} -> {new[key][entry]}")
    return lines


def close(a, b, tolerance, *ends):
    """Return whether two numbers are the same within a share of themselves or of the ends of an
    interval.
    """
    if a is None or b is None or a == b:
        return a == b
    return abs(a - b) <= tolerance * max(abs(x) for x in (a, b, *ends) if x is not None)


VARIANTS = []
for listed in figures():
    for name in listed.variants:
        VARIANTS.append(_marked(listed.id, listed.seconds <= 2, name))


@pytest.mark.parametrize(("figure_id", "variant"), VARIANTS)
def test_a_variant_has_the_claims_of_its_figure(figure_id, variant):
    figure = load_figure(figure_id).as_variant(variant)
    evidence = evidence_of(figure)
    committed = json.loads((DOCUMENTS / f"{figure_id}.json").read_text())["claims"]
    kept = {one["id"]: one["verdict"] for one in committed}
    assert verdicts(figure.claims(evidence)) == kept
    check_pure(figure, evidence)


DIGITS = (
    "dataset.per_class=100",
    "dataset.test_per_class=50",
    "optimizer.epochs=3",
    "record.snapshots.interval=200",
)
FEW = (
    "dataset.per_class=10",
    "dataset.test_per_class=2",
    "optimizer.epochs=2",
    "optimizer.batch_size=10",
)
SIXTY = ("dataset.per_class=60", "optimizer.iterations=3000")
GAN = (
    "architecture.generator_widths=[16]",
    "architecture.discriminator_widths=[16]",
    "initialization.only=null",
    "optimizer.iterations=20",
    "record.snapshots.interval=10",
)
STEPS = ("optimizer.iterations=40",)
SHORTER = {
    "cohen2021-taylor": STEPS,
    "edelman2024-early": STEPS,
    "gromov2023-ipr": (
        "optimizer.iterations=20",
        "optimizer.lr=0.05",
        "dataset.p=7",
        "architecture.outputs=7",
    ),
    **{f"min2024-fig{k}": SIXTY for k in (5, 10, 11)},
    "min2024-fig13": ("dataset.per_class=60", "optimizer.batch_size=20"),
    "phuong2021-fig1": ("optimizer.epochs=1",),
    "phuong2021-fig2": ("optimizer.epochs=1",),
    "phuong2021-fig3": FEW,
    "phuong2021-fig4": FEW,
    "sarussi2021-fig2": DIGITS,
    "sarussi2021-fig6": DIGITS,
    "tachet2018-fig5-gan": GAN,
}
"""Runs of fewer updates or samples than the figure's."""
OF_A_KIND = {
    "cohen2021-taylor",
    "edelman2024-early",
    "gromov2023-ipr",
    "min2024-fig13",
    "phuong2021-fig3",
    "sarussi2021-fig2",
    "tachet2018-fig5-gan",
}
"""One of each paper."""


@pytest.mark.parametrize("figure_id", [_marked(one, one in OF_A_KIND) for one in SHORTER])
def test_shorter_runs_give_verdicts_and_a_picture(figure_id):
    figure = load_figure(figure_id)
    evidence = evidence_of(figure, SHORTER[figure_id])
    assert "not reproduced" in verdicts(figure.claims(evidence)).values()
    check_pure(figure, evidence)
