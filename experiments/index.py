"""Index of all papers and figures: literals only, so that `dyn list` imports no figure."""

from __future__ import annotations

from dynamics_cli.reproduction.entries import FigureEntry, PaperEntry

PAPERS: dict[str, PaperEntry] = {
    "boursier2022": PaperEntry(
        "Gradient flow dynamics of shallow ReLU networks for square loss and orthogonal inputs",
        "Boursier, Pillaud-Vivien, Flammarion",
        "NeurIPS 2022, arXiv:2206.00939",
        {
            "boursier2022-fig1": FigureEntry("Timeline of the training dynamics", 3, "boursier2022.fig1"),
            "boursier2022-fig2": FigureEntry("State of training, orthogonal data", 4, "boursier2022.fig2"),
            "boursier2022-fig3": FigureEntry("Training loss, orthogonal data", 3, "boursier2022.fig3"),
            "boursier2022-fig4": FigureEntry("States and loss profile, five points", 6, "boursier2022.fig4"),
            "boursier2022-fig5": FigureEntry("Large initialisation, five points", 3, "boursier2022.fig5"),
            "boursier2022-fig6": FigureEntry(
                "Neurons in high dimension, two principal components", 15, "boursier2022.fig6"
            ),
            "boursier2022-fig7": FigureEntry(
                "Loss profile and explained variance, high dimension", 15, "boursier2022.fig7"
            ),
            "boursier2022-extra-norm": FigureEntry(
                "Final norm against initialisation scale", 20, "boursier2022.extra_norm"
            ),
        },
    ),
}
