"""Index of all papers and figures: literals only, so that `dyn list` imports no figure."""

from __future__ import annotations

from dynamics_cli.reproduction.entries import FigureEntry, PaperEntry, Reason

FLOW = ("flow",)

_EPOCHS = Reason(
    "paper",
    "the limit is neared like 1 / log t, and 500 epochs are too few to tell it from the class"
    " means",
)
_SCALE = Reason(
    "paper",
    "the constants of its proof ask for a scale that no float can hold; its experiments have 1e-6",
)
_TIME = Reason(
    "our setting",
    "3000 epochs of plain SGD; the limit is neared like 1 / log t, and rescaled time gets there",
)
_STEP = Reason("our setting", "the step; shares outside fall with it, and the paper prints none")
_PRINTED_SIGNS = Reason(
    "paper",
    "the printed v is of a model that the release lacks (`model.Wq`): its v_7 is -0.0003; in the"
    " closed form v_7 is positive",
)
PAPERS: dict[str, PaperEntry] = {
    "andreyev2024": PaperEntry(
        "Edge of stochastic stability: revisiting the edge of stability for SGD",
        "Andreyev, Beneventano",
        "arXiv:2412.20553",
        {
            "andreyev2024-edge": FigureEntry("Batch sharpness and sharpness of SGD", 15, "edge"),
            "andreyev2024-batches": FigureEntry(
                "Levels of the sharpness against the batch",
                20,
                "edge",
                missed={
                    "any-batch": Reason(
                        "our data",
                        "500 images: batches of 32 stay below the edge, as batches of 16 do on"
                        " 200 images; on 1000 images they are at it",
                    ),
                },
            ),
            "andreyev2024-doubled": FigureEntry("A doubled step at the edge", 12, "edge"),
        },
    ),
    "arora2019": PaperEntry(
        "Implicit regularization in deep matrix factorization",
        "Arora, Cohen, Hu, Luo",
        "NeurIPS 2019, arXiv:1905.13655",
        {
            "arora2019-fig1": FigureEntry(
                "Error against the entries seen and the scale", 14, "fig1"
            ),
            "arora2019-fig2": FigureEntry("Error, nuclear norm and effective rank", 7, "fig2"),
            "arora2019-fig3": FigureEntry("Singular values along training", 7, "fig3"),
        },
    ),
    "boursier2022": PaperEntry(
        "Gradient flow dynamics of shallow ReLU networks for square loss and orthogonal inputs",
        "Boursier, Pillaud-Vivien, Flammarion",
        "NeurIPS 2022, arXiv:2206.00939",
        {
            "boursier2022-fig1": FigureEntry(
                "Timeline of the training dynamics",
                3,
                "fig1",
                FLOW,
                missed={
                    "fact-1": Reason(
                        "paper",
                        "it leaves lambda* open; from its own scale, 1e-6, five draws of ten are"
                        " within the bound, and from 1e-9 all",
                    ),
                },
            ),
            "boursier2022-fig2": FigureEntry(
                "State of training, orthogonal data",
                3,
                "orthogonal",
                FLOW,
                missed={
                    "both-fitted": Reason(
                        "our setting",
                        "0.01, the size of a dot in the figure, is our reading of fitted,"
                        " and draws lie on both sides of it at iteration 15000",
                    ),
                },
            ),
            "boursier2022-fig3": FigureEntry(
                "Training loss, orthogonal data",
                2,
                "fig3",
                FLOW,
                missed={
                    "local-pl": Reason(
                        "paper",
                        "Lemma 5 is for scales below 1e-2800, and its experiments"
                        " start from 1e-6; Lemma 14, from which it follows, holds",
                    ),
                },
            ),
            "boursier2022-fig4": FigureEntry(
                "States and loss profile, five points", 3, "five", FLOW
            ),
            "boursier2022-fig5": FigureEntry(
                "Large initialisation, five points",
                3,
                "five",
                missed={
                    "lazy": Reason(
                        "our setting",
                        "a tenth is our reading of significantly, and the draw of weights"
                        " and signs decides how much neurons move",
                    ),
                    "kernel": Reason(
                        "paper",
                        "it names no yardstick for approximately, and the two at hand disagree",
                    ),
                },
            ),
            "boursier2022-fig6": FigureEntry(
                "Neurons in high dimension, two principal components",
                6,
                "high_dim",
                FLOW,
                missed={
                    "only-after": Reason(
                        "paper", "in its own run neurons turn while they grow, and hardly after"
                    ),
                },
            ),
            "boursier2022-fig7": FigureEntry(
                "Loss profile and explained variance, high dimension", 6, "high_dim", FLOW
            ),
            "boursier2022-statements": FigureEntry(
                "Scale, Assumption 3, and lemmas along the way",
                8,
                "statements",
                missed=dict.fromkeys(
                    ("narrow-loss", "narrow-norm", "narrow-groups"),
                    Reason(
                        "our setting",
                        "16 neurons: in one draw of ten Assumption 3 holds by chance, and in two"
                        " a network keeps a loss, which the paper does not exclude",
                    ),
                ),
            ),
        },
    ),
    "chizat2019": PaperEntry(
        "On lazy training in differentiable programming",
        "Chizat, Oyallon, Bach",
        "NeurIPS 2019, arXiv:1812.07956",
        {
            "chizat2019-fig1": FigureEntry(
                "Neurons and test loss against the scale",
                16,
                "fig1",
                missed=dict.fromkeys(
                    ("linearised", "travelled"),
                    Reason(
                        "paper",
                        "the networks of its figure are of ReLUs, whose derivative has a jump, and"
                        " Theorem 2.2 is about smooth activations",
                    ),
                ),
            ),
            "chizat2019-fig2": FigureEntry("Width and output scale; fresh samples", 7, "fig2"),
            "chizat2019-scaling": FigureEntry("Distance to the linearised model", 3, "scaling"),
        },
    ),
    "chizat2020": PaperEntry(
        "Implicit bias of gradient descent for wide two-layer neural networks trained with the"
        " logistic loss",
        "Chizat, Bach",
        "COLT 2020, arXiv:2002.04486",
        {
            "chizat2020-samples": FigureEntry(
                "Errors against the number of samples", 4, "clusters"
            ),
            "chizat2020-dimension": FigureEntry("Errors against the dimension", 6, "clusters"),
            "chizat2020-margin": FigureEntry("Margins against the width", 12, "clusters"),
        },
    ),
    "cohen2021": PaperEntry(
        "Gradient descent on neural networks typically occurs at the edge of stability",
        "Cohen, Kaur, Li, Kolter, Talwalkar",
        "ICLR 2021, arXiv:2103.00065",
        {
            "cohen2021-fig1": FigureEntry("Loss and sharpness at several step sizes", 6, "fig1"),
            "cohen2021-flow": FigureEntry("Progressive sharpening along gradient flow", 6, "flow"),
            "cohen2021-momentum": FigureEntry("Sharpness with momentum", 3, "momentum"),
            "cohen2021-taylor": FigureEntry(
                "Quadratic model at the edge, and a step cut", 3, "taylor"
            ),
            "cohen2021-central": FigureEntry("Central flow of gradient descent", 5, "central"),
        },
    ),
    "doshi2023": PaperEntry(
        "To grok or not to grok: Disentangling generalization and memorization on corrupted"
        " algorithmic datasets",
        "Doshi, Das, He, Gromov",
        "ICLR 2024, arXiv:2310.13061",
        {
            "doshi2023-phases": FigureEntry("Phases under label corruption", 33, "phases"),
            "doshi2023-pruning": FigureEntry(
                "Neurons pruned by their participation ratio", 17, "pruning"
            ),
            "doshi2023-diagram": FigureEntry("A coarse phase diagram", 12, "diagram"),
        },
    ),
    "edelman2024": PaperEntry(
        "The evolution of statistical induction heads: In-context learning Markov chains",
        "Edelman, Tsilivis, Edelman, Malach, Goel",
        "NeurIPS 2024, arXiv:2402.11004",
        {
            "edelman2024-phases": FigureEntry(
                "Phases of the minimal model",
                28,
                "minimal",
                missed={
                    "newest": Reason(
                        "paper",
                        "the released code gives 0.592 from W = 0 and from W = 0.01; with the mask"
                        " that it leaves out the loss is 0.554, a batch of which may be 0.533",
                    ),
                    "signs": _PRINTED_SIGNS,
                },
            ),
            "edelman2024-delay": FigureEntry("Chains without a simpler solution", 25, "minimal"),
            "edelman2024-three": FigureEntry("Weights on three symbols", 15, "minimal"),
            "edelman2024-early": FigureEntry(
                "First growth in closed form",
                6,
                "minimal",
                missed=dict.fromkeys(("signs", "signs-theory"), _PRINTED_SIGNS),
            ),
            "edelman2024-transformer": FigureEntry(
                "A transformer and its two heads",
                30,
                "transformer",
                missed={
                    "earlier": Reason(
                        "our setting",
                        "steps six times the released ones on a third of the positions: the"
                        " transformer hardly rests at unigram, which could delay it",
                    ),
                },
            ),
        },
    ),
    "goldt2019": PaperEntry(
        "Dynamics of stochastic gradient descent for two-layer neural networks in the"
        " teacher-student setup",
        "Goldt, Advani, Saxe, Krzakala, Zdeborova",
        "NeurIPS 2019, arXiv:1906.08632",
        {
            "goldt2019-dynamics": FigureEntry("Online learning beside its ODE", 4, "students"),
            "goldt2019-size": FigureEntry(
                "Deviation from the ODE against the dimension", 5, "students"
            ),
            "goldt2019-overparam": FigureEntry(
                "Final error against the number of students", 10, "students"
            ),
        },
    ),
    "gromov2023": PaperEntry(
        "Grokking modular arithmetic",
        "Gromov",
        "arXiv:2301.02679",
        {
            "gromov2023-curves": FigureEntry(
                "Loss and accuracy on both splits", 4, "curves", ("paper",)
            ),
            "gromov2023-ipr": FigureEntry(
                "Inverse participation ratios of weights", 3, "ipr", ("paper",)
            ),
            "gromov2023-phases": FigureEntry(
                "Sums of the phases of the weights", 3, "phases", ("paper",)
            ),
            "gromov2023-analytic": FigureEntry("Accuracy of analytic weights", 3, "analytic"),
            "gromov2023-fraction": FigureEntry("When both splits are learnt", 8, "fraction"),
        },
    ),
    "kunin2024": PaperEntry(
        "Get rich quick: exact solutions reveal how unbalanced initializations promote rapid"
        " feature learning",
        "Kunin, Raventos, Domine, Chen, Klindt, Saxe, Ganguli",
        "NeurIPS 2024, arXiv:2406.06158",
        {
            "kunin2024-fig1": FigureEntry("ReLU networks over scale and imbalance", 15, "relu"),
            "kunin2024-fig3": FigureEntry(
                "One neuron: size, alignment, kernel distance", 4, "neurons"
            ),
            "kunin2024-fig4": FigureEntry("One neuron: paths of the predictor", 4, "neurons"),
        },
    ),
    "lau2023": PaperEntry(
        "The local learning coefficient: a singularity-aware complexity measure",
        "Lau, Furman, Wang, Murfet, Wei",
        "AISTATS 2025, arXiv:2308.12108",
        {
            "lau2023-exact": FigureEntry("Estimates against exact values", 13, "exact"),
            "lau2023-training": FigureEntry("Along training from saddle to saddle", 11, "training"),
        },
    ),
    "kunin2025": PaperEntry(
        "Alternating gradient flows: a theory of feature learning in two-layer neural networks",
        "Kunin, Marchetti, Chen, Karkada, Simon, DeWeese, Ganguli, Miolane",
        "NeurIPS 2025, arXiv:2506.06489",
        {
            "kunin2025-addition": FigureEntry("Modular addition, mode by mode", 7, "addition"),
            "kunin2025-diagonal": FigureEntry("Diagonal networks from eight scales", 5, "diagonal"),
            "kunin2025-dormant": FigureEntry("A neuron becomes dormant again", 3, "diagonal"),
        },
    ),
    "liu2023": PaperEntry(
        "Omnigrok: grokking beyond algorithmic data",
        "Liu, Michaud, Tegmark",
        "ICLR 2023, arXiv:2210.01117",
        {
            "liu2023-student": FigureEntry("Teacher and student at several scales", 8, "student"),
            "liu2023-landscape": FigureEntry("Losses on spheres of weights", 8, "landscape"),
            "liu2023-mnist": FigureEntry("Grokking on MNIST", 9, "mnist"),
        },
    ),
    "lu2024": PaperEntry(
        "Asymptotic theory of in-context learning by linear attention",
        "Lu, Letey, Zavatone-Veth, Maiti, Pehlevan",
        "PNAS 2025, arXiv:2405.11751",
        {
            "lu2024-fig1": FigureEntry(
                "Errors against sequences: the peak, and ridge", 30, "errors"
            ),
            "lu2024-fig2": FigureEntry("Errors against the length of the context", 15, "errors"),
            "lu2024-fig3": FigureEntry("Best lengths of the context", 5, "lengths"),
            "lu2024-fig4": FigureEntry("Errors against the number of tasks", 60, "errors"),
        },
    ),
    "min2024": PaperEntry(
        "Early neuron alignment in two-layer ReLU networks with small initialization",
        "Min, Mallada, Vidal",
        "ICLR 2024, arXiv:2307.12851",
        {
            "min2024-fig1": FigureEntry(
                "Motion of a direction during early alignment", 2, "sketches"
            ),
            "min2024-fig2": FigureEntry(
                "Cones of the data and fates of positive neurons", 2, "sketches"
            ),
            "min2024-fig3": FigureEntry("The flow at the boundary of a data point", 2, "sketches"),
            "min2024-fig4": FigureEntry(
                "Evolution of the activation pattern of one neuron",
                3,
                "fig4",
                missed={"active-live": _SCALE},
            ),
            "min2024-fig5": FigureEntry(
                "MNIST digits 1 and 0",
                22,
                "digits",
                missed={
                    "same-label": Reason(
                        "our setting",
                        "0.9 is our reading of very likely; all images of the digits miss it too",
                    ),
                    "aligned": Reason(
                        "our setting",
                        "the draw of initial weights: ten draws on 2000 images give 1900 to 2600,"
                        " five of them within 10 %; three on all images 2150, 2200 and 1900",
                    ),
                    "w-minus": Reason(
                        "our data",
                        "2000 images of the digits give 0.888 in all of ten draws; with all images"
                        " of the paper (--preset full) it comes out",
                    ),
                },
            ),
            "min2024-fig6": FigureEntry(
                "Toy data at three stages",
                3,
                "plane",
                missed=dict.fromkeys(("flow-ends", "flow-rate"), _SCALE),
            ),
            "min2024-fig7": FigureEntry(
                "Two points of correlation sin 0.1",
                3,
                "plane",
                missed={
                    "all-inside": Reason(
                        "our setting", "the draw of initial weights; the paper shows one"
                    ),
                },
            ),
            "min2024-fig8": FigureEntry(
                "Two points of correlation sin 0.001",
                3,
                "plane",
                missed={
                    "cosine": Reason(
                        "our setting",
                        "0.95 at iteration 7000 is our reading of aligned; neurons that"
                        " have just entered S+ still turn, and get there later",
                    ),
                },
            ),
            "min2024-fig9": FigureEntry("Two orthogonal points", 3, "plane"),
            "min2024-fig10": FigureEntry("MNIST digits 3 and 8", 25, "digits"),
            "min2024-fig11": FigureEntry("MNIST digits 1 and 7", 25, "digits"),
            "min2024-fig12": FigureEntry("Two-phase training by SGD, both layers", 6, "motion"),
            "min2024-fig13": FigureEntry("No two phases, first layer only", 3, "motion"),
            "min2024-fig14": FigureEntry("Paths of activation counts of real neurons", 3, "paths"),
            "min2024-fig15": FigureEntry("A measured path and the maximal path", 3, "paths"),
            "min2024-fig16": FigureEntry(
                "Edges of a path and of the maximal path, part 1", 3, "paths"
            ),
            "min2024-fig17": FigureEntry(
                "Edges of a path and of the maximal path, part 2", 3, "paths"
            ),
            "min2024-fig18": FigureEntry(
                "Flow around a discontinuity, Assumption 1 violated", 3, "sketches"
            ),
            "min2024-fig19": FigureEntry(
                "Flow around a discontinuity under Assumption 1", 2, "sketches"
            ),
            "min2024-fig20": FigureEntry(
                "Non-existence of a Caratheodory solution", 3, "single_neuron"
            ),
            "min2024-fig21": FigureEntry(
                "Non-uniqueness of Caratheodory solutions", 3, "single_neuron"
            ),
            "min2024-statements": FigureEntry(
                "Bounds of the lemmas and of Theorem 1",
                3,
                "statements",
                missed=dict.fromkeys(("lemma-13", "t2", "loss-bound"), _SCALE),
            ),
        },
    ),
    "phuong2021": PaperEntry(
        "The inductive bias of ReLU networks on orthogonally separable data",
        "Phuong, Lampert",
        "ICLR 2021",
        {
            "phuong2021-fig1": FigureEntry(
                "Two-layer network on orthogonally separable data",
                3,
                "max_margin",
                missed={
                    "closer": _EPOCHS,
                },
            ),
            "phuong2021-fig2": FigureEntry(
                "Residual network on orthogonally separable data",
                4,
                "max_margin",
                missed={
                    "closer": _EPOCHS,
                    **dict.fromkeys(
                        ("directions-2", "directions-3", "correlation"),
                        Reason(
                            "our setting",
                            "that most rows align is our reading of a picture of one network; in"
                            " two or three draws of ten fewer than half do",
                        ),
                    ),
                },
            ),
            "phuong2021-fig3": FigureEntry(
                "Distributions of feature similarity, MNIST",
                60,
                "mnist",
                missed={
                    "blue-left": Reason(
                        "paper",
                        "in the unit of the axis the untrained network shifts it left in more pairs"
                        " of layers, as its products shrink; in mean deviations 0.71 of the pairs"
                        " do, where chance gives up to 0.75",
                    ),
                    "separable": Reason(
                        "our setting",
                        "the paper gives no share; with its 4950 updates of 128 images (--preset"
                        " full) nine in ten mixed pairs are at most 0, and we ask for all",
                    ),
                },
            ),
            "phuong2021-fig4": FigureEntry(
                "First fully connected layer of the convolutional network",
                50,
                "mnist",
                missed={
                    "few": Reason(
                        "our setting",
                        "1000 updates of 16 images, where the paper has 4950 of 128; the"
                        " count changes with both",
                    ),
                    "mixed": Reason(
                        "our setting",
                        "1000 updates of 16 images, where the paper has 4950 of 128; the"
                        " share is as large as chance gives",
                    ),
                },
            ),
            "phuong2021-theorem1": FigureEntry(
                "Balanced gradient flow to the limit of Theorem 1",
                12,
                "balanced",
                missed={
                    "closer": Reason(
                        "our setting",
                        "the larger of two starts: in seeds 512 and 1536 one neuron of 40, which"
                        " began in the sector of the other class and has 6e-5 of the norm or less,"
                        " has not turned from its class mean yet; from 1e-3 all have in ten seeds",
                    ),
                    "sectors": Reason(
                        "our setting",
                        "the larger of two starts: in seeds 1280 and 1536 one neuron of 40, which"
                        " began in the sector of the other class and has 2e-5 of the norm or less,"
                        " is still on its way when others have fitted the data; from 1e-3 all are"
                        " there in ten seeds, as Lemma 1 says of small starts",
                    ),
                },
            ),
            "phuong2021-table1": FigureEntry(
                "Architecture of the convolutional network", 2, "mnist"
            ),
        },
    ),
    "rhee2026": PaperEntry(
        "Muon learns balanced solutions in matrix factorization without slow saddle-to-saddle"
        " dynamics",
        "Rhee, Simon, Karkada",
        "arXiv:2606.30509",
        {
            "rhee2026-modes": FigureEntry("Modes learned one by one, and all at once", 4, "modes"),
            "rhee2026-steps": FigureEntry("The final loss against the step", 8, "steps"),
            "rhee2026-conserved": FigureEntry("What each optimizer conserves", 5, "conserved"),
            "rhee2026-fig2": FigureEntry("Flows of two numbers", 3, "scalar"),
            "rhee2026-fig4": FigureEntry("A small step, a large one, and annealing", 2, "spike"),
        },
    ),
    "sarussi2021": PaperEntry(
        "Towards Understanding Learning in Neural Networks with Linear Teachers",
        "Sarussi, Brutzkus, Globerson",
        "ICML 2021, arXiv:2101.02533",
        {
            "sarussi2021-fig1": FigureEntry(
                "Decision regions and neurons for large and small initialisation",
                4,
                "fig1",
                missed={
                    "large-not-linear": Reason(
                        "our setting",
                        "1 % of the directions is our reading of linear, and scale and draw"
                        " are ours; the paper prints neither",
                    ),
                },
            ),
            "sarussi2021-fig2": FigureEntry(
                "MNIST pairs (0, 1) and (3, 5): points outside the linear regime",
                7,
                "digits",
                missed=dict.fromkeys(("3-5-training", "3-5-held-out"), _STEP),
            ),
            "sarussi2021-fig3": FigureEntry(
                "A linear decision boundary of an output that is not linear", 4, "two_neurons"
            ),
            "sarussi2021-fig4": FigureEntry(
                "Learned and predicted decision boundary and weights, two Gaussians",
                4,
                "fig4",
                missed={
                    "boundary-sgd": _TIME,
                    "gaussians-boundary-sgd": _TIME,
                    "margin-largest": Reason(
                        "our data",
                        "assumption 4 excludes two points of the sample, whose numbers the paper"
                        " does not print",
                    ),
                },
            ),
            "sarussi2021-fig5": FigureEntry(
                "Two neurons: leaky ReLU against ReLU", 3, "two_neurons"
            ),
            "sarussi2021-fig6": FigureEntry(
                "More MNIST pairs: points outside the linear regime",
                9,
                "digits",
                missed=dict.fromkeys(
                    (
                        "2-3-held-out",
                        "4-9-training",
                        "4-9-training-enters",
                        "4-9-held-out",
                        "4-9-held-out-enters",
                        "5-8-training",
                        "5-8-training-enters",
                        "5-8-held-out",
                        "5-8-held-out-enters",
                        "5-8-linear",
                    ),
                    _STEP,
                ),
            ),
            "sarussi2021-fig7": FigureEntry("Two measures of clustering, MNIST", 4, "digits"),
            "sarussi2021-fig8": FigureEntry(
                "Entrance into the PAR, Gaussians in many dimensions", 3, "gaussians"
            ),
            "sarussi2021-fig9": FigureEntry(
                "An NAR that is not a PAR",
                4,
                "gaussians",
                missed={
                    "not-par": Reason(
                        "our data",
                        "the draw of points and outlier; with this one all neurons are in"
                        " the PAR for a while",
                    ),
                },
            ),
            "sarussi2021-theorem41": FigureEntry(
                "Epochs to a small loss from any start, and a network with a bias",
                6,
                "convergence",
                missed={
                    "bias-outside": Reason(
                        "our setting",
                        "step and scale; in three draws of ten all points end outside, while none"
                        " is decided otherwise",
                    ),
                },
            ),
        },
    ),
    "saxe2014": PaperEntry(
        "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks",
        "Saxe, McClelland, Ganguli; with Atanasov, Bordelon, Pehlevan 2022",
        "ICLR 2014, arXiv:1312.6120; arXiv:2111.00034",
        {
            "saxe2014-fig2": FigureEntry("The plane of one mode's weights", 3, "fig2"),
            "saxe2014-fig3": FigureEntry("Strengths of modes against iterations", 3, "fig3"),
            "saxe2014-fig4": FigureEntry("Learning time and best step against depth", 3, "fig4"),
            "saxe2014-fig6a": FigureEntry(
                "Iterations against depth by initial weights", 3, "fig6a"
            ),
            "saxe2014-silent-alignment": FigureEntry(
                "The kernel aligns before the loss falls", 3, "silent_alignment"
            ),
        },
    ),
    "tachet2018": PaperEntry(
        "On the learning dynamics of deep neural networks",
        "Tachet des Combes, Pezeshki, Shabanian, Courville, Bengio",
        "arXiv:1809.06848",
        {
            "tachet2018-fig1": FigureEntry("Network architecture", 2, "fig1"),
            "tachet2018-fig2": FigureEntry(
                "Phase diagram of one mode and learning curves",
                5,
                "phase",
                missed={
                    "sigmoidal-y": Reason(
                        "paper",
                        "by its own equations the hidden activation is concave at first for"
                        " c < 0 and a small start",
                    ),
                },
            ),
            "tachet2018-fig3": FigureEntry("A neuron that both classes activate", 4, "shared"),
            "tachet2018-fig4": FigureEntry(
                "Logit and confidence, several depths and norms",
                3,
                "deep_modes",
                missed={
                    "deeper-small": Reason(
                        "paper",
                        "it says so without a condition; by Eq. 5 it fails from small"
                        " initial logits",
                    ),
                },
            ),
            "tachet2018-fig5-gan": FigureEntry(
                "GAN on eight Gaussians, either loss", 41, "fig5_gan"
            ),
            "tachet2018-fig5-time": FigureEntry(
                "Time to a confidence: hinge loss against cross-entropy", 3, "fig5_time"
            ),
            "tachet2018-fig6": FigureEntry(
                "Gradient starvation from a fair start",
                3,
                "starving",
                missed={
                    "theorem-d2": Reason(
                        "paper",
                        "a factor lambda is missing in print; with it, as in the proof, the"
                        " theorem holds",
                    ),
                    "limited": Reason(
                        "paper", "for small lambda the term is larger than the rest of the exponent"
                    ),
                },
            ),
            "tachet2018-fig7": FigureEntry(
                "A shared neuron, hyperboloid of two sheets", 4, "shared"
            ),
            "tachet2018-fig8": FigureEntry(
                "Logit and confidence, N = 4 and N = 8",
                3,
                "deep_modes",
                missed={
                    "deeper-small": Reason(
                        "paper",
                        "it says so without a condition; by Eq. 5 it fails from small"
                        " initial logits",
                    ),
                },
            ),
            "tachet2018-fig9": FigureEntry("Hinge loss: diagram and learning curves", 5, "phase"),
            "tachet2018-fig10": FigureEntry(
                "Gradient starvation, bound without the initial values", 3, "starving"
            ),
            "tachet2018-statements": FigureEntry(
                "Independent modes, ratio of times, several points", 6, "statements"
            ),
            "tachet2018-table1": FigureEntry("Gradient starvation: bounds of Eq. 7", 3, "starving"),
            "tachet2018-table2": FigureEntry("Cats and dogs with the light effect", 95, "light"),
            "tachet2018-table2-digits": FigureEntry("Two digits with the light effect", 9, "light"),
        },
    ),
    "woodworth2020": PaperEntry(
        "Kernel and rich regimes in overparametrized models",
        "Woodworth, Gunasekar, Lee, Moroshko, Savarese, Golan, Soudry, Srebro",
        "COLT 2020, arXiv:2002.09277",
        {
            "woodworth2020-fig2": FigureEntry(
                "Error, norms and samples against the scale", 22, "fig2"
            ),
            "woodworth2020-fig3": FigureEntry("Penalties of deeper diagonal networks", 3, "fig3"),
        },
    ),
    "zhang2025": PaperEntry(
        "Training dynamics of in-context learning in linear attention",
        "Zhang, Singh, Latham, Saxe",
        "ICML 2025, arXiv:2501.16265",
        {
            "zhang2025-merged": FigureEntry(
                "Merged key and query: one drop of the loss", 5, "merged"
            ),
            "zhang2025-separate": FigureEntry("Rank one: from saddle to saddle", 17, "separate"),
            "zhang2025-features": FigureEntry("The equal network on cubic features", 6, "merged"),
        },
    ),
}
