"""Kinds: the classes that a config can name, and all that they are made of and given.

Every room imports from here, and so does third-party code: `from dynamics_cli.kinds import Loss`.
Begin with `base`, what a kind is, and `registry`, where kinds come from; each base class has a
module named as its section, and `problem` has what kinds are given. `formulas`, the functions that
formulas are made of, is the room beside it.
"""

from dynamics_cli.formulas import algebra as formulas
from dynamics_cli.kinds.arrays import Array, Evaluation, Floats, Labels, Parameters, Shapes
from dynamics_cli.kinds.base import (
    Finding,
    Fraction,
    Kind,
    NonNegative,
    Positive,
    PositiveInt,
    Section,
    Sections,
)
from dynamics_cli.kinds.clocks import Clock, RescaledClock, SteadyClock
from dynamics_cli.kinds.data import Dataset, Samples, check_size, make_samples
from dynamics_cli.kinds.initializations import Initialization
from dynamics_cli.kinds.losses import Loss
from dynamics_cli.kinds.measures import Column, Measure
from dynamics_cli.kinds.networks import Activation, Architecture
from dynamics_cli.kinds.optimizers import Descent, Minibatch, Optimizer, Schedule
from dynamics_cli.kinds.problem import (
    Problem,
    Record,
    RunConfig,
    State,
    read_only,
)
from dynamics_cli.kinds.registry import OneOf, all_kinds, get_kind
from dynamics_cli.kinds.snapshots import Snapshots
from dynamics_cli.kinds.streams import FreshStreams, Streams, TeacherStreams, stream
from dynamics_cli.kinds.theory import Curve, Theory
from dynamics_cli.kinds.torch_optimizers import TorchOptimizer

__all__ = [
    "Activation",
    "Architecture",
    "Array",
    "Clock",
    "Column",
    "Curve",
    "Dataset",
    "Descent",
    "Evaluation",
    "Finding",
    "Floats",
    "Fraction",
    "FreshStreams",
    "Initialization",
    "Kind",
    "Labels",
    "Loss",
    "Measure",
    "Minibatch",
    "NonNegative",
    "OneOf",
    "Optimizer",
    "Parameters",
    "Positive",
    "PositiveInt",
    "Problem",
    "Record",
    "RescaledClock",
    "RunConfig",
    "Samples",
    "Schedule",
    "Section",
    "Sections",
    "Shapes",
    "Snapshots",
    "State",
    "SteadyClock",
    "Streams",
    "TeacherStreams",
    "Theory",
    "TorchOptimizer",
    "all_kinds",
    "check_size",
    "formulas",
    "get_kind",
    "make_samples",
    "read_only",
    "stream",
]
