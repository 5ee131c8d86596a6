"""The functions that distributions call, annotated with their result type: a tensor."""

from __future__ import annotations

from collections.abc import Callable

from ..functions import activation, create, elementwise, embed, joining, loss, matrix, sampling, shape, special
from ..table import elementwise as elementwise_records
from ..table import special as special_records
from ..tensor import Tensor

Function = Callable[..., Tensor]

_sample_dirichlet: Function = sampling._sample_dirichlet
_standard_gamma: Function = sampling._standard_gamma
arange: Function = create.arange
as_tensor: Function = create.as_tensor
binary_cross_entropy_with_logits: Function = loss.binary_cross_entropy_with_logits
binomial: Function = sampling.binomial
cat: Function = joining.cat
cholesky_inverse: Function = matrix.cholesky_inverse
cholesky_solve: Function = matrix.cholesky_solve
diag_embed: Function = shape.diag_embed
digamma: Function = special_records.digamma
draw: Function = create.draw
draw_bernoulli: Function = create.bernoulli
drawn_from: Function = create.drawn_from
eye: Function = create.eye
full: Function = create.full
full_like: Function = create.full_like
log_softmax: Function = activation.log_softmax
logsigmoid: Function = elementwise_records.logsigmoid
multinomial: Function = create.multinomial
mvlgamma: Function = special.mvlgamma
one_hot: Function = embed.one_hot
ones_like: Function = create.ones_like
poisson: Function = create.poisson
randn: Function = create.randn
softmax: Function = activation.softmax
stack: Function = joining.stack
tensor: Function = create.tensor
where: Function = elementwise.where
xlogy: Function = special.xlogy
zeros_like: Function = create.zeros_like
