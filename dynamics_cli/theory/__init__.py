"""Predictions of the papers: closed forms, ODEs and linear algebra in float64, one concept a file.

Losses are `L = loss_factor / (2 n) sum_k (h(x_k) - y_k)^2`: `loss_factor=1` is the loss of Boursier
et al. 2022 (Eq. 1), `loss_factor=2` the mean squared error that the released code minimises, on
which everything happens twice as fast. Times are gradient flow's; gradient descent reaches time t
after `t / lr` iterations. For Tachet des Combes et al. 2018 (logistic and hinge loss) time is
(learning rate) x (updates) for samples drawn from the data set, where class k has the share `p_k`;
modules that count sums over a batch instead say so.
"""
