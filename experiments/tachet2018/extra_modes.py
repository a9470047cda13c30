"""Beyond the figures: closed forms of the appendix and random sampling, each beside networks really trained."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from dynamics_cli import kit
from dynamics_cli.runs.replica import replicas_of

from .theory.confidence_times import time_ratio
from .theory.several import hidden_layer, orthogonal_mode, softmax_mode
from .trained import (
    ModeCurve,
    confidence,
    crossing,
    draw_curves,
    if_learnt,
    largest_error,
    layers,
    mode_curve,
    one_point,
    order,
    outputs,
    pattern_changes,
    preactivations,
    reached,
    step,
    times,
    trained_handle,
)

SAMPLED = "tachet2018/sampled.yaml"
DRAWS = 128
"""Seeds of the sampled runs at either step."""
STEPS = {"0.04": 600, "0.004": 6000}
"""Step -> updates of the sampled runs."""
POINTS = (1, 2, 4, 8)
"""m of A.7."""
DELTA = 0.02
"""Corollary 3.3 is measured at the confidence 1 - delta."""
COARSE = ("optimizer.lr=0.01", "optimizer.iterations=2400", "record.snapshots.interval=4")


def evidence(runs: kit.Runs) -> kit.Evidence:
    """Compare every run with its closed form.

    `orders` of convergence are of A.4, A.7, A.2; `sampled` has both classes of the first seed at the smaller step;
    `deviations` (steps, `DRAWS`) are the largest from the closed form; `changes` of activation patterns and output
    signs belong to Lemmas 3.1 and A.1; `ratio` is t2* / t1* of Corollary 3.3, trained.
    """
    layer, classes = _layer_curves(runs["layer"]), _classes_curves(runs["classes"])
    orthogonal = [_orthogonal_curve(runs[f"m = {m}"]) for m in POINTS]
    sampled = [[_both(one) for one in replicas_of(runs[f"sampled {lr}"])] for lr in STEPS]
    t1, t2 = (crossing(one.t, one.P, 1 - DELTA) for one in _both(runs["ratio"]))

    def order_of(role: str, coarse: list[ModeCurve], fine: list[ModeCurve]) -> float:
        sizes = step(runs[f"{role}, coarse"]), step(runs[role])
        return order(largest_error(coarse), largest_error(fine), sizes)

    return kit.Evidence(
        layer=layer,
        orthogonal=orthogonal,
        classes=classes,
        orders=(
            order_of("layer", _layer_curves(runs["layer, coarse"]), layer),
            order_of("m = 4", [_orthogonal_curve(runs["m = 4, coarse"])], [orthogonal[POINTS.index(4)]]),
            order_of("classes", _classes_curves(runs["classes, coarse"]), classes),
        ),
        sampled=sampled[-1][0],
        deviations=np.array([[largest_error(pair) for pair in row] for row in sampled]),
        changes=(
            if_learnt(_least_confidence(runs["lemma"]), pattern_changes(runs["lemma"])),
            if_learnt(reached(classes), pattern_changes(runs["classes"])),
        ),
        ratio=t2 / t1,
    )


def _least_confidence(run: kit.Run) -> float:
    """Return the least confidence in the class of a sample in the end."""
    data = run.dataset()
    return float(expit(outputs(run, data.x)[-1] * data.y).min())


def _both(run: kit.Run) -> list[ModeCurve]:
    return [mode_curve(run, label) for label in (1, -1)]


def _layer_curves(run: kit.Run) -> list[ModeCurve]:
    """Return both classes of a network of several neurons per class (A.4); `y` is that of the class's first neuron."""
    signs = np.sign(layers(run)[-1][0, 0])
    curves = []
    for k, label in enumerate((1, -1)):
        x, norm, p = one_point(run, label)
        own = signs == label
        y = preactivations(run, x[None])[:, 0, own]  # (K, h)
        path = hidden_layer(times(run), y[0], layers(run)[-1][0, 0, own], norm, p=p, label=label)
        name = f"$D_{k + 1}$, {own.sum()} neurons"
        curves.append(ModeCurve(name, times(run), y[:, 0], path.y[:, 0], confidence(run, x, label), path.confidence))
    return curves


def _orthogonal_curve(run: kit.Run) -> ModeCurve:
    """Return the confidence in m orthogonal points of D_1, of norm 1, on which one neuron starts alike (A.7)."""
    x = run.dataset().x
    y = preactivations(run, x)[:, :, 0]  # (K, m)
    z0 = float(layers(run)[-1][0, 0, 0])
    path = orthogonal_mode(times(run), float(y[0, 0]), z0, len(x), float(np.linalg.norm(x[0])))
    P = expit(outputs(run, x))  # (K, m)
    worst = np.abs(P - path.confidence[:, None]).argmax(axis=1)
    return ModeCurve(f"$m={len(x)}$", times(run), y[:, 0], path.y, P[np.arange(len(P)), worst], path.confidence)


def _classes_curves(run: kit.Run) -> list[ModeCurve]:
    """Return the modes of a C-class network with one neuron per class, in full batches (A.2)."""
    dataset, (W, Z) = run.dataset(), layers(run)
    share = 1.0 if run.config.loss.reduction == "sum" else 1.0 / dataset.n
    logits = outputs(run, dataset.x)  # (K, n, C)
    P = np.exp(logits - logits.max(axis=-1, keepdims=True))
    P /= P.sum(axis=-1, keepdims=True)
    curves = []
    for x, label, probability in zip(dataset.x, dataset.y.astype(int), np.moveaxis(P, 1, 0), strict=True):
        y = W[:, label] @ x
        others = np.delete(Z[0, :, label], label)
        norm, z0 = float(np.linalg.norm(x)), float(Z[0, label, label] - others.mean())
        path = softmax_mode(times(run), float(y[0]), z0, Z.shape[1], norm, p=share)
        name = rf"$\Vert x_{label + 1}\Vert={norm:g}$"
        curves.append(ModeCurve(name, times(run), y, path.y, probability[:, label], path.confidence))
    return curves


def _rate(one: ModeCurve) -> float:
    """Return `d ln u / dt (1 + exp(u)) / (2 ||x||)` of a trained network of A.7, norm 1: `sqrt(m)`."""
    u = np.log(one.P / (1 - one.P))
    middle = slice(len(u) // 4, 3 * len(u) // 4)
    return float(np.median((np.gradient(np.log(u), one.t) * (1 + np.exp(u)) / 2.0)[middle]))


def _overlay(id_: str, networks: str, source: str, curves: list[ModeCurve], power: float) -> list[kit.Claim]:
    return [
        kit.claim(id_, f"Trained networks follow the closed form: {networks} (largest |P_train - P_theory|)",
                  source, kit.at_most(1e-3), largest_error(curves)),
        kit.claim(f"{id_}-order", "and deviate in proportion to the step (power of the step)",
                  "gradient descent is Euler's method", kit.near(1.0, 0.1), power),
    ]  # fmt: skip


def claims(e: kit.Evidence) -> list[kit.Claim]:
    """Compare with Lemmas 3.1 and A.1, Theorem 3.2, Corollary 3.3 and Appendices A.2, A.4, A.7."""
    rates = np.array([_rate(one) for one in e.orthogonal])
    mean = e.deviations.mean(axis=1)
    sizes = [float(value) for value in STEPS]
    return [
        *_overlay("layer", "several neurons per class", "A.4", e.layer, e.orders[0]),
        *_overlay("orthogonal", "orthogonal points of a class, full batches", "A.7", e.orthogonal, e.orders[1]),
        *_overlay("classes", "three classes under softmax", "A.2 (the curve is not in the paper)",
                  e.classes, e.orders[2]),
        kit.claim("sqrt-m", "m orthogonal points are learnt sqrt(m) times as fast (largest relative deviation of the "
                  "trained rate)", "A.7", kit.at_most(0.01),
                  if_learnt(reached(e.orthogonal), float(np.abs(rates / rates[0] / np.sqrt(POINTS) - 1).max()))),
        kit.claim("lemma-3-1", "Under H1 to H3 no neuron changes its activity on any point, no output weight its sign "
                  "(changes seen)", "Lemma 3.1", kit.exactly(0), e.changes[0]),
        kit.claim("lemma-a-1", "The same for three classes under H4 to H6 (changes seen)",
                  "Lemma A.1", kit.exactly(0), e.changes[1]),
        kit.claim("corollary", "t2* / t1* is about (||x_1|| / ||x_2||) p_1 / (1 - p_1) (trained, p_1 = 3/4, norms 1 "
                  "and 2, P = 98 %)", "Corollary 3.3", kit.around(float(time_ratio(1.0, 2.0, 0.75))), e.ratio),
        kit.claim("sampled",
                  f"Classes drawn at random ({DRAWS} seeds): the mean deviation is like the square root of the step "
                  "(power of the step)", "Theorem 3.2 with Section 3.2's p_k; noise of sampling", kit.around(0.5),
                  order(float(mean[0]), float(mean[1]), (sizes[0], sizes[1]))),
    ]  # fmt: skip


def draw(e: kit.Evidence) -> kit.Drawing:
    """Draw four panels of confidences."""
    figure, axes = kit.new_figure(2, 2, width=kit.TEXT_WIDTH, aspect=0.78)
    panels = (
        (e.layer, "Several neurons a class (A.4)"),
        (e.orthogonal, "$m$ orthogonal points (A.7)"),
        (e.classes, "Three classes, softmax (A.2)"),
        (e.sampled, "Classes drawn at random, $p_1=3/4$"),
    )
    for k, (panel, (curves, title)) in enumerate(zip(axes, panels, strict=True)):
        lines = draw_curves(panel, curves, values="P", label="$P_t$")
        panel.set_ylim(None, 1.01)
        kit.panel_label(panel, k, title)
        kit.place_legend(panel, [*lines, trained_handle()], "inside")
    return figure


def _orthogonal(m: int, *extra: str) -> kit.Wanted:
    x = np.eye(8)[:m].tolist()
    return kit.Wanted(
        "tachet2018/two_classes.yaml",
        (
            f"dataset.x={x}", f"dataset.y={[1] * m}", "architecture.width=1", "initialization.y=[[0.2], []]",
            f"initialization.z=[[{0.2 * float(np.sqrt(m))!r}], []]", "loss.reduction=sum",
            "optimizer.iterations=8000", "record.snapshots.interval=20", *extra,
        ),
    )  # fmt: skip


def _layer(*extra: str) -> kit.Wanted:
    starts = ("initialization.y=[[0.1, 0.3, 0.05], [0.2, 0.6]]", "initialization.z=[[0.3, 0.1, 0.2], [0.1, 0.2]]")
    return kit.Wanted("tachet2018/two_classes.yaml", ("architecture.width=5", *starts, *extra))


def _sampled(lr: str, updates: int) -> kit.Wanted:
    changes = (f"optimizer.lr={lr}", f"optimizer.iterations={updates}", f"record.snapshots.interval={updates // 40}")
    return kit.Wanted(SAMPLED, changes, DRAWS)


FIGURE = kit.Figure(
    id="tachet2018-extra-modes",
    caption=(
        "Not in the paper: the closed forms that it proves without a figure (A.2, A.4, A.7) and the effect of sampling "
        "the classes at random (p_1 = 3/4, step 0.004), as lines, with trained networks as dots."
    ),
    configs={
        "layer": _layer(),
        "layer, coarse": _layer(*COARSE),
        **{f"m = {m}": _orthogonal(m) for m in POINTS},
        "m = 4, coarse": _orthogonal(4, "optimizer.lr=0.01", "optimizer.iterations=800", "record.snapshots.interval=2"),
        "classes": "tachet2018/classes.yaml",
        "classes, coarse": kit.Wanted(
            "tachet2018/classes.yaml", ("optimizer.lr=0.01", "optimizer.iterations=900", "record.snapshots.interval=2")
        ),
        "lemma": "tachet2018/lemma.yaml",
        "ratio": kit.Wanted(
            SAMPLED,
            (
                "optimizer.kind=gd",
                "initialization.y=[[0.2], [0.28284271247461906]]",
                "initialization.z=[[0.2], [0.1414213562373095]]",
                "optimizer.lr=2.0e-3",
                "optimizer.iterations=30000",
            ),
        ),
        **{f"sampled {lr}": _sampled(lr, updates) for lr, updates in STEPS.items()},
    },
    origin={"closed forms": "stated", "data, starts, steps": "chosen", "seeds": "chosen"},
)  # fmt: skip
