"""Interim names."""

from dynamics_cli.architectures.convolutional import Convolutional as ConvolutionalArchitecture
from dynamics_cli.architectures.fully_connected import FullyConnected as FullyConnectedArchitecture
from dynamics_cli.architectures.gan import Gan as GanArchitecture
from dynamics_cli.architectures.residual import Residual as ResidualArchitecture
from dynamics_cli.architectures.two_layer import TwoLayer as TwoLayerArchitecture
from dynamics_cli.architectures.vgg16 import Vgg16 as Vgg16Architecture
