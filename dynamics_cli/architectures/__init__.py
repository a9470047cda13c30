"""Networks in the papers' notation, a kind a file."""


def network_function(config, parameters):  # interim
    return config.function(parameters)


def parameter_shapes(config, d):  # interim
    return config.shapes(d)


def build_model(config, d):  # interim
    return config.build(d)
