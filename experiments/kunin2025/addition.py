"""Modular addition by a quadratic network: Fourier modes of a template are learnt one by one,
the largest first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

PRINTED = {
    10_000: 0.1563,
    20_000: 0.0526,
    30_000: 0.0313,
    130_000: 0.0239,
    140_000: 0.0232,
    150_000: 0.0088,
    160_000: 0.0081,
    170_000: 0.0001,
}
"""Epoch -> loss in the output of `modular arithmetic.ipynb` (cell 12): that of the state before
the epoch's update.
"""
DIGITS = 5e-5
"""Half a unit of the last printed digit."""
SHOWN = (1000, 10_000, 100_000)
"""Epochs at which the notebook shows outputs and weights (cell 23), besides the last: each has
learnt one mode more.
"""
PAIR = (3, 5)
"""The pair (a, b) whose output is drawn."""


@dataclass(frozen=True)
class Evidence:
    """A run, its K recorded states and the r modes of its template."""

    p: int
    epochs: kit.Ints
    losses: kit.Floats
    modes: kit.Ints
    levels: list[float]
    sizes: kit.Floats
    amplitudes: kit.Floats
    times: kit.Floats
    bounds: kit.Floats
    target: kit.Floats
    outputs: list[kit.Floats]
    right: kit.Floats
    norms: kit.Floats
    spectra: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Read a run; `modes` (r,) are the template's frequencies by falling amplitude, `sizes` (r,)
    these amplitudes.
    """
    run = next(iter(runs.values()))
    samples = run.dataset()
    epochs = run.snapshot_iterations
    optimizer = run.config.optimizer
    p = samples.y.shape[1]
    spectrum = np.abs(np.fft.rfft(samples.y[0]))
    modes = np.argsort(-spectrum)[: int((spectrum > 1e-6 * spectrum.max()).sum())]
    sizes = spectrum[modes]
    outputs = [run.network(i)(samples.x) for i in range(len(epochs))]
    amplitudes = np.array([np.abs(np.fft.rfft(h, axis=1)).mean(axis=0)[modes] for h in outputs])
    W, H = kit.recorded(run, "output_weight", "hidden_weight")
    norms = np.sqrt(np.sum(W**2, axis=1) + np.sum(H**2, axis=2))
    rate = 2 * optimizer.lr / (1 - (optimizer.momentum or 0.0))  # type: ignore[attr-defined]
    return Evidence(
        p,
        epochs,
        losses=run.losses / p,
        modes=modes,
        levels=[2 * float(np.sum(sizes[k:] ** 2)) / p**2 for k in range(len(modes) + 1)],
        sizes=sizes,
        amplitudes=amplitudes,
        times=np.array([kit.first_at(epochs, half) for half in (amplitudes / sizes >= 0.5).T]),
        bounds=(1 / norms[0].max() - 1) / (3 * largest_utility(sizes, p)) / rate,
        target=samples.y[PAIR[0] * p + PAIR[1]],
        outputs=[h[PAIR[0] * p + PAIR[1]] for h in outputs],
        right=np.array([np.mean(h.argmax(axis=1) == samples.y.argmax(axis=1)) for h in outputs]),
        norms=norms[-1],
        spectra=np.abs(np.fft.rfft(W[-1], axis=0)).T,
    )


def largest_utility(sizes: kit.Floats, p: int) -> kit.Floats:
    """Return the largest mean of `<f(x), y>` over the pairs of a neuron of norm 1, for modes of
    amplitudes `sizes`.
    """
    return np.asarray(np.sqrt(2 * p / 27) * sizes**3 / p**2)


def _at(e: Evidence, values: kit.Floats, epoch: int) -> kit.Floats:
    """Return values (K, ...) at a recorded epoch; NaN where the run is shorter."""
    return (
        values[int(np.searchsorted(e.epochs, epoch))]
        if epoch <= e.epochs[-1]
        else np.full(values.shape[1:], np.nan)
    )


def claims(e: Evidence) -> list[kit.Claim]:
    counts = [
        (_at(e, e.amplitudes, epoch) / e.sizes >= 0.5).sum()
        for epoch in (*SHOWN, int(e.epochs[-1]))
    ]
    complete = np.isfinite(e.times).all()
    active = e.spectra[e.norms >= 1]
    single = active.max(axis=1) ** 2 / np.sum(active**2, axis=1)
    return [
        *(
            kit.claim(
                f"loss-{epoch}",
                f"Loss at epoch {epoch:,}".replace(",", " "),
                "printed, cell 12",
                kit.printed(value, 1e-4),
                e.losses[epoch - 1] if epoch < len(e.losses) else np.nan,
            )
            for epoch, value in PRINTED.items()
        ),
        kit.claim(
            "accuracy",
            "Share of pairs at epoch 20 000 whose largest output is where the label's is",
            "printed, cell 12",
            kit.printed(0.895, 1e-4),
            _at(e, e.right, 20_000),
        ),
        kit.claim(
            "one-by-one",
            "Modes learnt at epochs 1 000, 10 000, 100 000 and in the end are 0, 1, 2, 3 (share of "
            "these; learnt: half of the template's amplitude)",
            "cell 23",
            kit.exactly(1.0),
            kit.given(complete, np.mean(np.array(counts) == np.arange(len(counts)))),
        ),
        kit.claim(
            "order",
            "Modes are learnt in decreasing order of their amplitudes (share of modes learnt later"
            " than the one before)",
            "abstract",
            kit.exactly(1.0),
            kit.given(complete, np.mean(np.diff(e.times) > 0)),
        ),
        kit.claim(
            "not-before",
            "No mode is learnt before a neuron of it, aligned from the start, would have norm 1 "
            "(least epoch over this bound)",
            "cell 19",
            kit.at_least(1.0),
            np.min(e.times / e.bounds),
        ),
        kit.claim(
            "neurons",
            "In the end most neurons of norm 1 or more have one mode (share whose output weights"
            " have more than half of their power at one frequency)",
            "cell 23; most: more than half",
            kit.most(),
            kit.given(complete, np.mean(single > 0.5)),
        ),
        *(
            kit.theory(
                f"plateau-{k}",
                f"With {what} learnt the loss is the power of the other modes",
                "printed, cell 12",
                kit.near(PRINTED[epoch], DIGITS),
                e.levels[k],
            )
            for k, what, epoch in (
                (1, "the largest mode", 10_000),
                (2, "the two largest modes", 30_000),
            )
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 2, aspect=0.75, extra_height=0.35)
    epochs = {"xlabel": "epoch", "limits_x": (100, len(e.losses)), "log": "x"}
    losses = kit.chart(
        "Loss",
        "mean square",
        kit.line(1, e.losses, "trained", "measured"),
        [
            kit.level(level, "power of the modes left", "theory dashed 1.0")
            for level in e.levels[:-1]
        ],
        kit.line([*PRINTED], [*PRINTED.values()], "printed", "highlight points"),
        limits=(5e-5, 1.5),
        **epochs | {"log": "xy"},
    )
    modes = [(f"C{k}", *mode) for k, mode in enumerate(zip(e.sizes, e.bounds, strict=True), 1)]
    amplitudes = kit.chart(
        "Amplitudes of modes",
        "amplitude in the output",
        *(
            kit.line(e.epochs[1:], values, f"frequency {mode}", f"C{k}")
            for k, (mode, values) in enumerate(zip(e.modes, e.amplitudes[1:].T, strict=True), 1)
        ),
        *(kit.level(size, look=f"{color} dotted 1.0") for color, size, _ in modes),
        *(kit.upright(bound, "not before", f"{color} dashed 1.0") for color, _, bound in modes),
        **epochs,
    )
    shown = [epoch for epoch in (*SHOWN, int(e.epochs[-1])) if epoch <= e.epochs[-1]]
    looks = ("muted", "C1", "C2", "C3")  # the color of the mode learnt last
    outputs = kit.chart(
        f"Output for {PAIR[0]} + {PAIR[1]}",
        "output",
        *(
            kit.line(
                0,
                e.outputs[int(np.searchsorted(e.epochs, epoch))],
                f"epoch {kit.format_number(epoch)}",
                look,
            )
            for look, epoch in zip(looks, shown, strict=False)
        ),
        kit.line(0, e.target, "its label", "theory dotted 1.2"),
        xlabel="entry of the output",
        ticks=range(0, e.p + 1, 5),
    )
    handles = kit.panel(axes[0], 0, losses) + kit.panel(axes[1], 1, amplitudes)
    kit.place_legend(axes[2], kit.panel(axes[2], 2, outputs))
    order = np.lexsort((-e.spectra.max(axis=1), e.spectra.argmax(axis=1)))
    image = axes[3].imshow(e.spectra[order], aspect="auto", cmap="Greys", vmin=0)
    axes[3].set(xlabel="frequency", ylabel="neuron, sorted", xticks=range(0, e.p // 2 + 1, 2))
    figure.colorbar(image, ax=axes[3], label="modulus")
    kit.panel_label(axes[3], 3, "Output weights in the end")
    kit.figure_legend(figure, handles)
    return figure


CONFIG = "kunin2025/addition.yaml"
FIGURE = kit.Figure(
    id="kunin2025-addition",
    caption=(
        "A quadratic network of 18 neurons learns to add shifts of a template of three frequencies"
        " modulo 20: loss beside the numbers that the released notebook prints; amplitude of each"
        " frequency in the output, dotted that of the template, dashed its earliest epoch; an"
        " output at four epochs; Fourier moduli of the output weights."
    ),
    configs={"network": kit.Wanted(CONFIG)},
    presets={"full": {"network": kit.Wanted(CONFIG, ("optimizer.iterations=1000000",))}},
    seed_configs={
        "network": kit.Wanted(
            CONFIG,
            ("initialization={kind: unbalanced, scale: 0.01, scales: [0.158113883, 0.223606798]}",),
        )
    },
)
