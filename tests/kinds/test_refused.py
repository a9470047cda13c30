"""Kinds that do not go together, or not with the data: refused in a message that says what would
do.
"""

import pytest

from dynamics_cli.config import ConfigError, load_config
from dynamics_cli.errors import InputError
from dynamics_cli.training.backends import build_stepper, choose
from dynamics_cli.training.problem import build_problem
from tests.cases import config_of, read

SMALL = config_of()
DEEP = read("""
dataset: {kind: points, x: [[1.0, 0.0], [0.0, 1.0]], y: [0, 1]}
architecture: {kind: fully_connected, widths: [6, 5]}
initialization: {kind: default_scaled}
""")
SOFTMAX = read("loss: {kind: cross_entropy}", DEEP)
LOGISTIC = read("loss: {kind: logistic}", DEEP)
LINEAR = read("""
architecture: {kind: fully_connected, widths: [7, 6, 5], activation: linear, bias: false}
initialization: {kind: decoupled, scale: 1.0}
""")
PAIRED = read("initialization: {kind: paired, scale: 1.0}")
UNBALANCED = read("initialization: {kind: unbalanced, scale: 1.0}", LINEAR)
VALUES = read("initialization: {kind: values, hidden_weight: [[1.0, 2.0]], output_weight: [1.0]}")
MODES = read("""
dataset: {kind: points, x: [[1.0, 0.0], [0.0, 2.0]], y: [1, -1]}
architecture: {kind: two_layer, width: 3}
initialization: {kind: independent_modes, y: [[0.2, 0.3], [0.4]], z: [[0.2, 0.1], [0.5]]}
loss: {kind: logistic}
""")
GAN = read("""
dataset: {kind: mixture, modes: 9}
architecture: {kind: gan}
loss: {kind: logistic}
initialization: {kind: default_scaled}
optimizer: {kind: adam, batch_size: 4}
""")
FLOW = read("optimizer: {kind: gradient_flow, until: 2.0}")
IN_CONTEXT = read("""
dataset: {kind: in_context_regression, n: 9, context: 5, eigenvalues: [0.6, 0.4], features: moments}
architecture: {kind: linear_attention}
""")
CHAINS = read("""
dataset: {kind: markov_chains, n: 4, length: 5, start: stationary}
architecture: {kind: transformer, tokens: 5, width: 2, outputs: 2, predict: every}
initialization: {kind: lecun}
loss: {kind: cross_entropy}
""")
TAUGHT = read("""
dataset:
  {kind: teacher, n: 4, dim: 2, architecture: {kind: fully_connected, widths: [6, 5]}}
optimizer: {kind: sgd, samples: fresh}
""")
DIGITS = read("""
dataset: {kind: mnist_pair, digits: [1, 0]}
loss: {kind: logistic}
""")
GAUSSIANS = read("dataset: {kind: gaussians, per_class: 3, mean: [0.0, 3.0], deviation: 0.5}")
PAIRS = read("""
dataset: {kind: modular_arithmetic, p: 7, train_fraction: 0.8, labels: classes}
architecture: {kind: transformer, tokens: 2, width: 16, heads: 2, outputs: 7}
initialization: {kind: lecun}
loss: {kind: cross_entropy}
""")
SEQUENCES = read(
    """
architecture: {kind: gpt, tokens: 2, width: 16, heads: 2, outputs: 7}
initialization: {kind: as_built}
""",
    PAIRS,
)
RESNET = read(
    """
architecture: {kind: resnet, depth: 8, width: 4, image: [1, 28, 28]}
initialization: {kind: as_built}
""",
    DIGITS,
)
MEASURED = read("initialization: {kind: default_scaled}")


def of(base, *rows):
    return [(base, *row) for row in rows]


def config_with(base, text):
    """Return a config with changed keys of its sections; a section with a kind takes the place of
    the other.
    """
    sections = {**SMALL, **base}
    for section, change in read(f"{{{text}}}").items():
        old = {} if "kind" in change else sections.get(section, {})
        sections[section] = old | change
    return config_of(**sections)


NO_WEIGHT_9 = "scales: no parameter 'weight_9'; this network has weight_1, bias_1"
TWO_SCALES = "scales has 2 entries, the network has 3 layers"
OUTPUTS = "outputs: must be the number of classes, >= 2, for the loss cross_entropy"
ONE_OUTPUT = "outputs: must be 1 for the loss logistic, not 3"
A_LAYER = "kind: convolutional, image: [1, 1, 2], convolutions: [[2, 1, 1, 0]]"
IMAGE = "kind: convolutional, image: [1, 6, 6]"
ZEROS = "dataset: {{kind: points, x: [{}], y: [1.0]}}"

CONFIGS = [
    *of(
        SMALL,
        ("optimizer: {nesterov: true}", "optimizer.nesterov: needs optimizer.momentum"),
        ("optimizer: {loss_scaled: true, momentum: 0.9}", "momentum: does not go with loss_scaled"),
        (
            "optimizer: {loss_scaled: true, clip: 1.0}",
            "optimizer.clip: does not go with loss_scaled",
        ),
        ("optimizer: {clip_by: value}", "optimizer.clip_by: needs optimizer.clip"),
        ("optimizer: {momentum: 1.0}", "optimizer.momentum: must be < 1"),
        ("optimizer: {kind: sgd, batch_size: 1, epochs: 2, iterations: 2}", "not both"),
        (
            "optimizer: {schedule: cosin}",
            "optimizer.schedule: unknown kind 'cosin'.*did you mean 'cosine'",
        ),
        (
            "optimizer: {schedule: {kind: step, every: 0}}",
            "optimizer.schedule.every: must be >= 1",
        ),
        (
            "optimizer: {schedule: {kind: piecewise, at: [0, 5], factors: [1.0]}}",
            "optimizer.schedule.factors: has 1 numbers, and at has 2 iterations",
        ),
        (
            "optimizer: {schedule: {kind: piecewise, at: [5, 5], factors: [1.0, 0.0]}}",
            r"optimizer.schedule.at\[1\]: must be above 5, not 5",
        ),
        (
            "optimizer: {schedule: {kind: piecewise, at: [5], factors: [0.0], between: geometric}}",
            r"optimizer.schedule.factors\[0\]: must be > 0 where between is geometric",
        ),
        (
            "optimizer: {schedule: {kind: power, exponent: -1}}",
            "optimizer.schedule.exponent: must be >= 0",
        ),
        (
            "optimizer: {schedule: {kind: cosine, warmup: 3}}",
            "optimizer.schedule.warmup: unknown key .*did you mean 'warm_up'",
        ),
        (
            "optimizer: {kind: adam, epochs: 3, replacement: true}",
            "replacement: needs a batch_size",
        ),
        ("optimizer: {kind: adam, epochs: 3, drop_last: true}", "drop_last: needs a batch_size"),
        (
            "optimizer: {kind: sgd, epochs: 3, drop_last: true, replacement: true}",
            "drop_last: does not go with replacement, whose batches have all the same size",
        ),
        (
            "optimizer: {kind: sgd, iterations: 3, drop_last: true, samples: fresh}",
            "drop_last: does not go with samples, whose batches have all the same size",
        ),
        (
            "optimizer: {kind: torch, name: RMSprob}",
            "optimizer.name: torch.optim has no 'RMSprob'; allowed are .*did you mean 'RMSprop'",
        ),
        (
            "optimizer: {kind: torch, name: LBFGS}",
            "optimizer.name: LBFGS cannot train here: it asks for the gradient several times",
        ),
        ("optimizer: {kind: torch, name: SparseAdam}", "it needs sparse gradients"),
        (
            "optimizer: {kind: torch, name: Rprop, schedule: cosine}",
            "optimizer.schedule: Rprop takes the step size for its first update alone",
        ),
        (
            "optimizer: {kind: torch, name: RMSprop, alfa: 0.9}",
            "optimizer.alfa: unknown key of torch.optim.RMSprop; .*did you mean 'alpha'",
        ),
        (
            "optimizer: {kind: torch, name: RMSprop, alpha: high}",
            "optimizer.alpha: must be a number, not the text 'high'",
        ),
        (
            "optimizer: {kind: torch, name: Adam, betas: [0.9]}",
            "optimizer.betas: must have at least 2 items",
        ),
        (
            "optimizer: {kind: torch, name: Adam, betas: [0.9, 1.5]}",
            "optimizer.betas: torch.optim.Adam says: Invalid beta parameter at index 1: 1.5",
        ),
        (
            "dataset: {kind: points, x: [[1], [2, 3]], y: [1, 2]}",
            r"dataset.x\[1\]: has 2 coordinates, the first 1; all need the same",
        ),
        (
            "dataset: {kind: points, x: [[1], [2]], y: [1]}",
            "dataset.y: has 1 label, but x has 2 samples; there must be one label per sample",
        ),
        ("dataset: {x_test: [[1, 2]]}", "dataset.y_test: is missing; x_test needs labels"),
        ("dataset: {y_test: [1]}", "dataset.x_test: is missing; y_test needs inputs"),
        (
            "dataset: {x_test: [[1]], y_test: [1]}",
            r"dataset.x_test\[0\]: has 1 coordinate, those of x 2; all need the same",
        ),
        (
            "dataset: {x_test: [[1, 2]], y_test: [1, 2]}",
            "dataset.y_test: has 2 labels, but x_test has 1 sample",
        ),
        (
            f"dataset: {{kind: file, path: '{__file__}'}}",
            "dataset.path: must name a .npz or a .csv file, not ",
        ),
        (
            "architecture: {activation: leaky_relu}",
            "slope: is missing; leaky_relu needs a number >= 0",
        ),
        ("architecture: {slope: 0.1}", "slope: belongs to activation leaky_relu, not to relu"),
        (
            "dataset: {kind: points, x: [[1.0]], y: [1.0]}, optimizer: {kind: sgd, samples: fresh}",
            "fresh needs dataset.kind 'clusters', .* or 'text'; points has only its own",
        ),
        (
            "dataset: {kind: linear_map, inputs: 2, outputs: 1, singular_values: [1.0]},"
            " optimizer: {kind: sgd, samples: fresh}",
            "dataset.n: is missing; fresh samples are Gaussian",
        ),
    ),
    *of(
        LINEAR,
        ("architecture: {kind: two_layer, width: 2}", "activation: must be linear"),
        ("architecture: {bias: true}", "bias: must be false"),
        (
            "architecture: {kind: residual, width: 2}, initialization: {kind: balanced_product,"
            " scale: 1.0}",
            "balanced_product needs architecture.kind two_layer",
        ),
    ),
    *of(
        PAIRED,
        ("architecture: {width: 3}", "architecture.width: must be even"),
        (
            "architecture: {kind: fully_connected, widths: [2, 3]}",
            r"architecture.widths\[1\]: must be even",
        ),
        ("architecture: {kind: residual, width: 2}", "paired needs the hidden layer"),
        (
            "architecture: {kind: fully_connected, widths: []}",
            "initialization.kind: paired needs the hidden layer",
        ),
    ),
    *of(
        UNBALANCED,
        ("initialization: {scales: [-1.0]}", r"scales\[0\]: must be >= 0, not -1.0$"),
        (
            "initialization: {scales: {weight_1: -1.0}}",
            "scales.weight_1: must be >= 0, not -1.0$",
        ),
        (
            "initialization: {scales: small}",
            "scales: must be a list or a mapping, not the text 'small'",
        ),
    ),
    *of(
        MODES,
        ("architecture: {width: 4}", "architecture.width: must be 3, the number of neurons"),
        (
            "architecture: {kind: fully_connected, widths: [3, 4], bias: false}",
            "widths: must be 3",
        ),
        ("architecture: {activation: linear}", "activation: must be relu"),
        (
            "architecture: {kind: fully_connected, widths: [3]}",
            "architecture.bias: must be false",
        ),
        (
            "initialization: {y: [[0.2], [0.1]], z: [[0.2], [0.1, 0.1]]}",
            "initialization.z: must have lists of the same lengths as y",
        ),
        ("architecture: {outputs: 3}", "architecture.outputs: must be 1"),
        (
            "initialization: {y: [[-0.2, 1], [1]], z: [[1, 1], [1]]}",
            "initialization.y",
        ),
    ),
    *of(
        SOFTMAX,
        (
            "architecture: {kind: residual, width: 3}",
            "loss.kind: cross_entropy needs architecture.kind .*'two_layer' or 'vgg16' with outputs"
            " >= 2; residual has one",
        ),
        ("architecture: {outputs: 1}", OUTPUTS),
        (f"architecture: {{{A_LAYER}, outputs: 1}}", OUTPUTS),
        ("architecture: {kind: vgg16, image: [1, 1, 2], outputs: 1}", OUTPUTS),
        (
            "architecture: {outputs: 2}, dataset: {kind: mnist_pair, digits: [1, 0]}",
            "must be classes for the loss cross_entropy, not signs",
        ),
        (
            "architecture: {outputs: 2}, dataset: {kind: mnist}",
            "architecture.outputs: must be at least 10",
        ),
        (
            "architecture: {outputs: 9}, dataset: {kind: cifar10}",
            "architecture.outputs: must be at least 10",
        ),
    ),
    *of(
        LOGISTIC,
        ("dataset: {y: [1, -1]}, architecture: {outputs: 3}", ONE_OUTPUT),
        (f"dataset: {{y: [1, -1]}}, architecture: {{{A_LAYER}, outputs: 3}}", ONE_OUTPUT),
        (
            "dataset: {y: [1, -1]}, architecture: {kind: vgg16, image: [1, 1, 2], outputs: 3}",
            ONE_OUTPUT,
        ),
        ("dataset: {kind: mnist}", "the loss logistic tells two apart: .*mnist_pair"),
    ),
    *of(
        DEEP,
        (
            "initialization: {kind: balanced, scale: 1.0}",
            "initialization.kind: balanced needs architecture.kind two_layer",
        ),
        (
            "initialization: {kind: unbalanced, scale: 1.0, output_value: 1}",
            "initialization.output_value: needs architecture.kind two_layer",
        ),
    ),
    *of(
        VALUES,
        (
            "architecture: {kind: fully_connected, widths: [6, 5]}",
            "initialization.kind: values needs architecture.kind two_layer",
        ),
        ("architecture: {width: 2}", "hidden_weight: has 1 entries, architecture.width is 2"),
    ),
    *of(
        GAN,
        (
            "loss: {kind: exponential}",
            "loss.kind: must be logistic .* or hinge for architecture.kind gan",
        ),
        (
            "dataset: {kind: points, x: [[1.0]], y: [1.0]}",
            "dataset.kind: must be mixture for architecture.kind gan",
        ),
        (
            "optimizer: {kind: adam}",
            "optimizer.kind: must be adam with a batch_size for architecture.kind gan",
        ),
        (
            "initialization: {kind: balanced, scale: 1.0}",
            "must be default_scaled or file for .*kind gan",
        ),
    ),
    *of(
        FLOW,
        (
            "optimizer: {spacing: geometric}",
            "optimizer.first: is missing; geometric spacing needs the time of the first point",
        ),
        (
            "optimizer: {first: 0.1}",
            "optimizer.first: belongs to spacing geometric, not to uniform",
        ),
        (
            "optimizer: {spacing: geometric, first: 3.0}",
            "optimizer.first: must be below until = 2, not 3",
        ),
        ("optimizer: {lr: 0.1}", "optimizer.lr: unknown key of kind 'gradient_flow'"),
        ("optimizer: {rtol: 0.0}", "optimizer.rtol: must be"),
    ),
    *of(
        IN_CONTEXT,
        (
            "architecture: {rank: 1}",
            "architecture.rank: is that of separate keys and queries",
        ),
        (
            "dataset: {n: 2, exact_moments: true}",
            "exact_moments: needs more sequences than the 2 columns",
        ),
        (
            "dataset: {exact_moments: true}, optimizer: {kind: sgd, samples: fresh, batch_size: 2}",
            "exact_moments: does not go with fresh samples",
        ),
        ("dataset: {test_tasks: same}", "test_tasks: needs dataset.tasks, the number of them"),
        (
            "dataset: {exact_moments: true, tasks: 3}",
            "exact_moments: does not go with dataset.tasks or sphere",
        ),
    ),
    *of(
        CHAINS,
        ("dataset: {order: 2}", "dataset.start: stationary needs dataset.order: 1"),
        (
            "dataset: {order: 2, start: uniform, rows: doubly_stochastic}",
            "dataset.rows: doubly_stochastic needs dataset.order: 1",
        ),
        (
            "dataset: {rows: doubly_stochastic, alpha: 2.0}",
            "dataset.alpha: is that of Dirichlet rows",
        ),
        (
            "dataset: {kind: text, path: a.txt, length: 4, n_test: 3}",
            "n_test: needs dataset.held_out, the share of the text",
        ),
    ),
    *of(
        TAUGHT,
        (
            "dataset: {scale: 2.0, initialization: {kind: unbalanced, scale: 1.0}}",
            "^<config>: dataset.scale: ",
        ),
        (
            "dataset: {initialization: {kind: balanced, scale: 0.1}}",
            "^<config>: dataset.initialization.kind: ",
        ),
        (
            "dataset: {architecture: {kind: fully_connected, widths: [6, 5], slope: 0.1}}",
            "^<config>: dataset.architecture.slope: ",
        ),
        ("dataset: {whiten: true}", "dataset.whiten: is of the samples as a whole"),
        ("dataset: {random_labels: 0.1}", "dataset.random_labels: is of the samples as a whole"),
        (
            "dataset: {replaced_labels: 0.1}",
            "dataset.replaced_labels: is of the samples as a whole",
        ),
        (
            "optimizer: {samples: fersh}",
            "optimizer.samples: must be 'fresh', not the text 'fersh'",
        ),
        (
            "optimizer: {epochs: 3}",
            "optimizer.epochs: there are none of fresh samples; give iterations",
        ),
        (
            "optimizer: {kind: adam, samples: fresh}",
            "optimizer.batch_size: is missing; fresh samples need their number",
        ),
    ),
    *of(
        DIGITS,
        (
            "dataset: {digits: [1, 1]}",
            "dataset.digits: must be two different digits, not 1 twice",
        ),
        ("dataset: {digits: [1, 10]}", r"dataset.digits\[1\]: must be <= 9, not 10"),
        (
            "dataset: {labels: classes}",
            "dataset.labels: must be signs for the loss logistic, not classes",
        ),
        (
            "dataset: {test: false, test_per_class: 3}",
            "dataset.test_per_class: makes no sense with test: false",
        ),
        ("dataset: {source: ful}", "did you mean 'full'"),
    ),
    *of(
        GAUSSIANS,
        ("dataset: {dim: 1}", "at least 2"),
        ("dataset: {mean: [0.0, 0.0]}", "must not be 0"),
        ("dataset: {outliers: [[1.0]]}", "has 1 coordinate"),
    ),
    *of(
        PAIRS,
        ("architecture: {heads: 3}", "architecture.width: 16 is not a multiple of heads = 3"),
    ),
    *of(
        SEQUENCES,
        ("architecture: {heads: 3}", "architecture.width: 16 is not a multiple of heads = 3"),
        (
            "architecture: {heads: 16, positions: rotary}",
            "architecture.width: rotary turns pairs: width / heads = 1 must be even",
        ),
        (
            "architecture: {kind: recurrent, tokens: 2, width: 4, dropout: 0.1, outputs: 7}",
            "architecture.dropout: is between layers; give layers >= 2",
        ),
    ),
    *of(
        RESNET,
        (
            "architecture: {depth: 18}",
            "architecture.depth: must be 6n \\+ 2, such as 14 or 20, not 18",
        ),
        (
            "architecture: {norm: group, width: 6}",
            "architecture.groups: 4 does not divide the 6 channels of architecture.width",
        ),
    ),
]
PROBLEMS = [
    *of(
        MODES,
        (
            "dataset: {x: [[1.0, 0.0], [-1.0, 0.1], [0.0, -2.0]], y: [1, 1, -1]}",
            "class 1 have a negative inner product",
        ),
        (
            "dataset: {x: [[1.0, 0.5], [0.0, 2.0]]}",
            "classes 1 and 2 have a positive inner product",
        ),
        ("dataset: {x: [[1.0, 0.0]], y: [1]}", "class 2 has no points"),
        (
            "initialization: {y: [[0.2, 0.3, 0.1], []], z: [[0.2, 0.1, 0.3], []]}",
            "class 2 has points and needs a neuron",
        ),
    ),
    *of(
        SMALL,
        (
            "dataset: {kind: points, x: [[1.0], [2.0]], y: [0.5, 1.0], replaced_labels: 0.5}",
            "replaced_labels: labels must be classes",
        ),
        (
            "dataset: {kind: linear_map, inputs: 2, outputs: 2, singular_values: [1.0],"
            " replaced_labels: 0.5}",
            "replaced_labels: labels must be classes",
        ),
        ("architecture: {train: [w]}", "no weight 'w'; it has hidden_weight"),
        ("optimizer: {layer_lr: {b: 1.0}}", "no weight 'b'"),
        (
            "optimizer: {kind: torch, name: Muon}",
            "kind torch does not take output_weight: Muon only supports 2D parameters",
        ),
        (
            "dataset: {x_test: [[1, 2]], y_test: [0.5]}, loss: {kind: exponential}",
            r"y_test\[0\] is 0.5",
        ),
        (
            "architecture: {kind: diagonal_linear}, initialization: {kind: kaiming}",
            r"u \(2,\) is no matrix; unbalanced and default_scaled",
        ),
        (
            "architecture: {outputs: 4}, dataset: {kind: points, x: [[1.0], [2.0]], y: [0, 3]},"
            " initialization: {kind: balanced, scale: 1.0, output_signs: halves},"
            " loss: {kind: cross_entropy}",
            "output_signs: halves needs a network with one output, not 4",
        ),
        (
            "architecture: {kind: matrix_product, rows: 3, columns: 2}, " + ZEROS.format([0.0] * 5),
            "samples of 5 columns; architecture.kind matrix_product needs pairs",
        ),
        (
            f"architecture: {{{IMAGE}, convolutions: [[3, 3, 1, 1]], widths: [5]}}, "
            + ZEROS.format([0.0] * 35),
            "has 36 numbers, the inputs have 35",
        ),
        (
            f"architecture: {{{IMAGE}, convolutions: [[1, 9, 1, 0]]}}, " + ZEROS.format([0.0] * 36),
            r"convolutions\[0\]: conv\(1,9,1,0\) does not fit 6 x 6",
        ),
        (
            "architecture: {kind: vgg16, image: [3, 32, 32]}, " + ZEROS.format([0.0] * 7),
            "has 3072 numbers, the inputs have 7",
        ),
        (
            "architecture: {kind: vgg16, image: [1, 1, 2], width_multiplier: 1e308}",
            "the network is too large",
        ),
        (
            "architecture: {kind: vgg16, image: [1, 1, 2], width_multiplier: 1e30}",
            "the network is too large",
        ),
        (
            "architecture: {kind: convolutional, image: [1, 1, 2],"
            " convolutions: [[4611686018427387904, 3, 1, 1], [4611686018427387904, 3, 1, 1]]}",
            "the network is too large",
        ),
    ),
    *of(
        IN_CONTEXT,
        ("dataset: {features: tokens}", "expected moments of D [+] 1 columns, "),
    ),
    *of(
        CHAINS,
        (
            "architecture: {kind: minimal_induction, tokens: 5, outputs: 3}",
            "samples of 10 columns are not tokens: 5 vectors of outputs: 3 numbers",
        ),
    ),
    *of(
        PAIRS,
        (
            "architecture: {tokens: 3}",
            "samples of 14 columns are not 3 tokens of equal length; divisors of 14 will do: 1, 2,"
            " 7, 14",
        ),
        (
            "architecture: {kind: gpt, tokens: 3, width: 4, outputs: 7}",
            "samples of 14 columns are not 3 tokens of equal length",
        ),
        (
            "architecture: {outputs: 3}",
            r"y\[\d+\] is \d, the cross_entropy loss needs a class number 0..2",
        ),
    ),
    *of(
        read("dataset: {kind: linear_map, inputs: 4, outputs: 3, singular_values: [1.0]}"),
        (
            "architecture: {outputs: 2}",
            "labels of 3 numbers beside 2 outputs.*architecture.outputs: 3",
        ),
        (
            "architecture: {outputs: 3}, loss: {kind: cross_entropy}",
            "labels are vectors of 3 numbers",
        ),
    ),
    *of(
        SOFTMAX,
        (
            "dataset: {y: [0, 0.5]}, architecture: {outputs: 2}",
            r"y\[1\] is 0.5, the cross_entropy loss needs a class number 0..1",
        ),
    ),
    *of(
        LOGISTIC,
        ("dataset: {y: [1, 0]}", r"dataset: y\[1\] is 0, the logistic loss needs -1 or 1"),
    ),
    *of(
        LINEAR,
        (
            "dataset: {kind: points, x: [[1.0], [1.0]], y: [1.0, -1.0]}",
            "no input is correlated with any label",
        ),
    ),
    *of(
        DEEP,
        ("initialization: {kind: unbalanced, scale: 0.5, scales: {weight_9: 1.0}}", NO_WEIGHT_9),
        ("initialization: {kind: unbalanced, scale: 0.5, scales: [1.0, 1.0]}", TWO_SCALES),
        ("initialization: {scales: {weight_9: 1.0}}", NO_WEIGHT_9),
        ("initialization: {scales: [1.0, 1.0]}", TWO_SCALES),
        ("initialization: {kind: kaiming, scales: {weight_9: 1.0}}", NO_WEIGHT_9),
        ("initialization: {kind: kaiming, scales: [1.0, 1.0]}", TWO_SCALES),
        ("initialization: {kind: orthogonal, scales: {weight_9: 1.0}}", NO_WEIGHT_9),
        ("initialization: {kind: orthogonal, scales: [1.0, 1.0]}", TWO_SCALES),
        ("initialization: {only: [weight_9]}", "no parameter 'weight_9'"),
    ),
    *of(
        MEASURED,
        (
            "record: {measures: [{kind: distance, layer: w}]}",
            "distance.layer 'w' is no weight of the network: hidden_weight",
        ),
        (
            "record: {measures: [{kind: singular_values, layer: end_to_end}]}",
            "layer end_to_end needs a linear network",
        ),
    ),
]


@pytest.mark.parametrize(
    ("base", "changes", "told"), CONFIGS, ids=[told[:40] for *_, told in CONFIGS]
)
def test_configs_that_make_no_sense(base, changes, told):
    with pytest.raises(ConfigError, match=told):
        load_config(config_with(base, changes))


@pytest.mark.parametrize(
    ("base", "changes", "told"), PROBLEMS, ids=[told[:40] for *_, told in PROBLEMS]
)
def test_networks_and_measures_that_do_not_suit_the_data(base, changes, told):
    config = load_config(config_with(base, changes))
    with pytest.raises(InputError, match=told):  # noqa: PT012
        problem = build_problem(config)
        problem.initial_parameters()
        for measure in problem.config.record.measures or ():
            measure.offered(problem)
        build_stepper([problem], choose([problem]))
