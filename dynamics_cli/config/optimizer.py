"""Interim names."""

from dynamics_cli.config.bases import Descent as DescentSection
from dynamics_cli.config.bases import Minibatch as MinibatchSection
from dynamics_cli.config.bases import Optimizer
from dynamics_cli.optimizers.descent import Adam, GradientDescent, StochasticGradientDescent
from dynamics_cli.optimizers.gradient_flow import GradientFlow
