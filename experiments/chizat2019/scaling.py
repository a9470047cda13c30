"""The theorem on lazy training: distances from the start and from the linearised model against
the output scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.architectures.two_layer import TwoLayer
from dynamics_cli.kinds import Architecture
from dynamics_cli.measures.two_layer import preactivations

ALPHAS = tuple(4.0**power for power in range(-1, 6))
ACTIVATIONS = ("tanh", "relu")
ROLE = "{}, alpha = {:g}"
ETA = 0.1
"""Step times alpha^2."""
LARGE = 4.0
"""alpha from which on powers are taken."""
ZERO = 1e-9
"""Output that counts as 0: rounding of differences of outputs up to alpha = 1024."""
WHAT = ("moved", "weights", "train", "test")


def features(net: TwoLayer, W: kit.Floats, a: kit.Floats, x: kit.Floats) -> kit.Floats:
    """Return the gradient of the unscaled output (n, m d + m) at hidden weights `W` and output
    weights `a`.
    """
    z = preactivations(x, W)
    inner = (net.sigma.derivative(z) * a)[:, :, None] * x[:, None, :]
    return np.concatenate([inner.reshape(len(x), -1), net.sigma.value(z)], axis=1)


def distances(run: kit.Run) -> dict[str, float]:
    """Return how far a run gets from its start, and from the linearised model trained beside it, at
    most.

    `moved` and `weights` are relative to nothing: norms of `w - w_0` and `w - w_lin`; `train` and
    `test` are root mean squares of the difference of the outputs.
    """
    net = run.config.architecture
    samples = run.dataset()
    start = run.state(0)
    assert isinstance(net, TwoLayer)
    assert samples.x_test is not None
    alpha = net.output_scale or 1.0
    n = samples.n
    J, J_test = (
        features(net, start["hidden_weight"], start["output_weight"], x)
        for x in (samples.x, samples.x_test)
    )
    values, U = np.linalg.eigh(J @ J.T)
    lr: float = run.config.optimizer.lr  # type: ignore[attr-defined]
    contraction = lr * alpha**2 * values / n
    t = run.snapshot_iterations
    small = np.minimum(
        np.maximum(contraction, 1e-14), 0.5
    )  # exact sums of powers where 1 - contraction loses digits
    summed = np.where(
        contraction < 0.5,
        -np.expm1(t[:, None] * np.log1p(-small)) / small,
        (1 - (1 - contraction) ** t[:, None]) / contraction,
    )
    lr_alpha = run.config.optimizer.lr * alpha / n  # type: ignore[attr-defined]
    linear = lr_alpha * (summed * (U.T @ samples.y)) @ U.T @ J  # (K, P): w_lin - w_0
    W, a = kit.recorded(run, "hidden_weight", "output_weight")
    w = np.concatenate([W.reshape(len(t), -1), a], axis=1)
    gaps = {"train": [], "test": []}  # type: dict[str, list[float]]
    for i in range(len(t)):
        h = run.network(i)
        for key, x, features_ in (("train", samples.x, J), ("test", samples.x_test, J_test)):
            gaps[key].append(float(np.sqrt(np.mean((h(x) - alpha * features_ @ linear[i]) ** 2))))
    return {
        "moved": float(np.linalg.norm(w - w[0], axis=1).max()),
        "weights": float(np.linalg.norm(w - w[0] - linear, axis=1).max()),
        **{key: max(gap) for key, gap in gaps.items()},
    }


@dataclass(frozen=True)
class Evidence:
    """Distances of all runs, and the largest share of a first loss that is left.

    `kinks` says by activation whether it has any, `start` is the largest output of a network at its
    start.
    """

    table: dict[str, dict[str, kit.Floats]]
    fitted: float
    kinks: dict[str, bool]
    start: float


def evidence(runs: kit.Runs) -> Evidence:
    """Compare all runs with their linearised models: `table` is activation -> quantity of `WHAT`
    -> (alphas,).
    """
    at = kit.by_values(runs, ROLE)
    table = {}
    for activation in ACTIVATIONS:
        rows = [distances(at[activation, alpha]) for alpha in ALPHAS]
        table[activation] = {what: np.array([row[what] for row in rows]) for what in WHAT}
    lazy = [run for (_, alpha), run in at.items() if alpha >= LARGE]
    nets = {kind: at[kind, LARGE].config.architecture for kind in ACTIVATIONS}
    return Evidence(
        table=table,
        fitted=max(float(run.final_loss / run.losses[0]) for run in lazy),
        kinks={kind: has_kinks(net) for kind, net in nets.items()},
        start=max(float(np.abs(run.network(0)(run.dataset().x)).max()) for run in lazy),
    )


def has_kinks(net: Architecture) -> bool:
    """Return whether the activation of a network has kinks."""
    sigma = getattr(net, "sigma", None)
    return sigma is not None and not sigma.smooth


def smooth_claim(made: kit.Claim, kinks: bool) -> kit.Claim:
    """Return a claim of Theorem 2.2, which is for networks with a Lipschitz derivative."""
    premise = "Theorem 2.2 is for an h with a Lipschitz derivative; activations with kinks"
    return kit.presupposing(made, premise, kit.exactly(0), kinks)


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare the powers with the theorem, which bounds from above alone."""
    large = np.array(ALPHAS) >= LARGE

    def power(activation: str, what: str) -> float:
        values = e.table[activation][what][large]
        return kit.given(e.fitted < 0.1, kit.power(np.array(ALPHAS)[large], values))

    rows = (
        (
            "moved-tanh",
            r"Weights travel a distance $O(1/\alpha)$ until the data are fitted (power, tanh, "
            r"$\alpha$ 4 to 1024)",
            -0.95,
        ),
        ("moved-relu", "(the same, ReLU)", -0.95),
        (
            "weights",
            r"Weights stay within $O(1/\alpha^2)$ of the linearised model's (power, tanh)",
            -1.95,
        ),
        (
            "train",
            r"Outputs on the training set stay within $O(1/\alpha)$ of the linearised model's"
            r" (power, tanh)",
            -0.95,
        ),
        (
            "test",
            r"Outputs on held-out samples stay within $O(1/\alpha)$ of the linearised model's"
            r" (power, tanh)",
            -0.95,
        ),
    )
    zero = "Theorem 2.2 is for h(w_0) = 0, the largest output at the start"
    made = []
    for id, statement, most in rows:
        what, *activation = id.split("-")
        kind = (*activation, "tanh")[0]
        one = kit.claim(id, statement, "Theorem 2.2", kit.at_most(most), power(kind, what))
        one = smooth_claim(one, e.kinks[kind])
        made.append(kit.presupposing(one, zero, kit.at_most(ZERO), e.start))
    return made


def draw(e: Evidence) -> kit.Drawing:
    names = {
        "moved": r"$\Vert w-w_0\Vert$",
        "weights": r"$\Vert w-w_{\rm lin}\Vert$",
        "train": "outputs, training",
        "test": "outputs, held-out",
    }
    shares = np.array(ALPHAS) / ALPHAS[-1]
    tanh = e.table["tanh"]
    slopes = [
        kit.line(ALPHAS, tanh[what][-1] / shares**k / 3, name, look)
        for what, k, name, look in (
            ("train", 1, r"$\alpha^{-1}$", "theory dashed 0.9"),
            ("weights", 2, r"$\alpha^{-2}$", "theory dotted 0.9"),
        )
    ]
    return kit.charts(
        *(
            kit.chart(
                {"tanh": "tanh", "relu": "ReLU"}[activation],
                "largest distance along training",
                [
                    kit.line(ALPHAS, e.table[activation][what], names[what], "joined")
                    for what in WHAT
                ],
                *slopes,
            )
            for activation in ACTIVATIONS
        ),
        xlabel=r"output scale $\alpha$",
        log="xy",
        reach=np.ravel([[of[what] for what in WHAT] for of in e.table.values()]),
    )


FIGURE = kit.Figure(
    id="chizat2019-scaling",
    caption=(
        "A centred two-layer network times alpha, trained on its loss over alpha^2, against its"
        " linearisation in the weights: largest distances along training, of outputs root mean"
        " squares. The theorem asks for a Lipschitz derivative, which ReLU lacks."
    ),
    configs=kit.grid(
        "chizat2019/scaled.yaml",
        {"architecture.activation": ACTIVATIONS, "architecture.output_scale": ALPHAS},
        ROLE,
        lambda _, alpha: f"optimizer.lr={ETA / alpha**2!r}",
    ),
)
