"""What Figures 1 to 3 share: the two directions, the sets of neurons, and what Section 4.2 predicts for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .states import LOSS_FACTOR, NAN, State, initial_scale, learning_rate, on_flow, state_at
from .theory.alignment import Assumption, D_minus, D_plus, S_minus_1, S_plus_1, check_assumptions, orthogonality
from .theory.growth import Saddle, aligned_mass, growth_loss, intermediate_saddle, logistic_growth

CONFIGS = {"orthogonal": "boursier2022/orthogonal.yaml"}
VARIANTS = on_flow("orthogonal", "boursier2022/orthogonal_flow.yaml")


@dataclass(frozen=True)
class Setting:
    """Data, initial weights, and the vectors and sets that they define (Section 4.1, Eqs. 5 and 6)."""

    x: kit.Floats
    """(n, d) inputs, bias column included."""
    y: kit.Floats
    lambda_: float
    lr: float
    D_plus: kit.Floats
    D_minus: kit.Floats
    S_plus: kit.Bools
    """(m,) members of `S_{+,1}`."""
    S_minus: kit.Bools
    """(m,) members of `S_{-,1}`."""
    assumptions: tuple[Assumption, ...]
    W_0: kit.Floats
    a_0: kit.Floats

    @property
    def usable(self) -> bool:
        """Whether the theory of Section 4 says something about this run: its data, its weights and its scale."""
        assumed = orthogonality(self.x) < 1e-6 and all(check.holds for check in self.assumptions[1:])
        return assumed and self.lambda_ < 1 and self.slower > 0

    @property
    def slower(self) -> float:
        """`loss_factor ||D||` of the labels that are fitted last: the paper's `||D_-||` in the time of the runs."""
        return LOSS_FACTOR * float(min(np.linalg.norm(self.D_plus), np.linalg.norm(self.D_minus)))


@dataclass(frozen=True)
class Prediction:
    """The dynamics that Section 4.2 predicts, with norms growing from the aligned initial mass."""

    loss: kit.Floats
    """(k,) predicted loss at the recorded iterations."""
    saddle: Saddle
    """The intermediate saddle (Fact 1)."""


def read_setting(run: kit.Run) -> Setting:
    """Return data, vectors and sets of a run."""
    dataset, start = run.dataset(), state_at(run, 0)
    x, y = dataset.x, dataset.y
    return Setting(
        x=x, y=y, lambda_=initial_scale(run), lr=learning_rate(run), D_plus=D_plus(x, y), D_minus=D_minus(x, y),
        S_plus=S_plus_1(x, y, start.W, start.a), S_minus=S_minus_1(x, y, start.W, start.a),
        assumptions=check_assumptions(x, y, start.W, start.a), W_0=start.W, a_0=start.a,
    )  # fmt: skip


def predict(setting: Setting, iterations: kit.Ints) -> Prediction | None:
    """Return what the theory predicts at `iterations` (k,); None where its assumptions fail."""
    if not setting.usable:
        return None
    x, y, times = setting.x, setting.y, iterations * setting.lr
    masses = {sign: aligned_mass(x, y, setting.W_0, setting.a_0, sign) for sign in (1, -1)}
    u = {sign: logistic_growth(times, masses[sign], x, y, sign, loss_factor=LOSS_FACTOR) for sign in masses}
    saddle = intermediate_saddle(x, y, loss_factor=LOSS_FACTOR)
    return Prediction(growth_loss(u[1], u[-1], x, y, loss_factor=LOSS_FACTOR), saddle)


def least_cosines(setting: Setting, state: State) -> tuple[float, float]:
    """Return the least cosine of `S_{+,1}` with `D_+` and of `S_{-,1}` with `-D_-`; NaN for an empty set."""
    plus = kit.cosines(state.W, setting.D_plus)[setting.S_plus]
    minus = kit.cosines(state.W, -setting.D_minus)[setting.S_minus]
    return float(plus.min()) if plus.size else NAN, float(minus.min()) if minus.size else NAN


def assumption_claim(setting: Setting) -> kit.Claim:
    """Return the check of Assumption 3, on which everything else rests."""
    return kit.theory(
        "assumption-3",
        "Both S+,1 and S-,1 hold neurons at initialisation (size of the smaller one)",
        "Assumption 3",
        kit.at_least(1),
        min(int(setting.S_plus.sum()), int(setting.S_minus.sum())),
    )


def violations(setting: Setting) -> list[str]:
    """Return which of Assumptions 2 and 3 the run violates (Assumption 1 asks for norms of 1 for convenience only)."""
    return [str(check) for check in setting.assumptions[1:] if not check.holds]
