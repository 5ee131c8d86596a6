"""scipy.special, whose functions take boxes. Where a derivative is not known, asking for it is an error."""

import math

import scipy.special as _special

import tapegrad as _tg
from autograd import numpy as _np
from autograd.extend import defjvp as _defjvp
from autograd.extend import defvjp as _defvjp
from autograd.extend import primitive as _primitive
from autograd.tracer import composed as _composed
from autograd.tracer import getval as _getval
from autograd.tracer import recorded as _recorded

_use = _tg.custom.use

_BESSEL = {
    "j0": "bessel_j0", "j1": "bessel_j1", "y0": "bessel_y0", "y1": "bessel_y1", "k0": "modified_bessel_k0",
    "k1": "modified_bessel_k1",
}  # fmt: skip
for _name in (
    "psi", "digamma", "gammaln", "multigammaln", "gammainc", "gammaincc", "erfinv", "logit", "expit", "i0", "i1", "i0e",
    "i1e", "erfcx", "ndtr", "ndtri", "log_ndtr", "entr", "xlogy", "xlog1py", "exp2", "expm1", "log1p", *_BESSEL,
):  # fmt: skip
    globals()[_name] = _recorded(getattr(_special, _name), getattr(_tg.special, _BESSEL.get(_name, _name)))
gammasgn = _composed(_special.gammasgn, lambda x: _special.gammasgn(_getval(x)))


def _unknown(name, argument):
    def rule(xp, ans, *args):
        raise NotImplementedError(f"the derivative of scipy.special.{name} by its argument {argument} is not known")

    return rule


def _elementwise(name, *rules):
    """A function of scipy.special with its derivative by each argument; None where nobody knows it."""
    function = getattr(_special, name)
    known = [_of_arity(len(rules), _unknown(name, i)) if rule is None else rule for i, rule in enumerate(rules)]
    return _recorded(function, _tg.custom.elementwise(name, function, *known, check=False))


def _of_arity(count, rule):
    """A rule with its arguments by name, as tapegrad.custom wants it."""
    return {
        1: lambda xp, ans, a: rule(xp, ans, a),
        2: lambda xp, ans, a, b: rule(xp, ans, a, b),
        3: lambda xp, ans, a, b, c: rule(xp, ans, a, b, c),
    }[count]


_log_beta = (
    lambda xp, ans, a, b: xp.digamma(a) - xp.digamma(a + b),
    lambda xp, ans, a, b: xp.digamma(b) - xp.digamma(a + b),
)
beta = _elementwise(
    "beta",
    lambda xp, ans, a, b: ans * (xp.digamma(a) - xp.digamma(a + b)),
    lambda xp, ans, a, b: ans * (xp.digamma(b) - xp.digamma(a + b)),
)
betaln = _elementwise("betaln", *_log_beta)


def _beta_density(xp, ans, a, b, x):
    log_beta = _use(xp, "betaln")(a, b)
    return xp.exp(xp.xlogy(a - 1.0, x) + xp.xlog1py(b - 1.0, -x) - log_beta)


def _t_density(xp, ans, df, x):
    scale = xp.lgamma((df + 1.0) * 0.5) - xp.lgamma(df * 0.5) - 0.5 * xp.log(df * math.pi)
    return xp.exp(scale - (df + 1.0) * 0.5 * xp.log1p(x * x / df))


betainc = _elementwise("betainc", None, None, _beta_density)
stdtr = _elementwise("stdtr", None, _t_density)
gamma = _elementwise("gamma", lambda xp, ans, x: ans * xp.digamma(x))
rgamma = _elementwise("rgamma", lambda xp, ans, x: -ans * xp.digamma(x))
erfcinv = _elementwise("erfcinv", lambda xp, ans, x: xp.exp(xp.square(ans)) * (-0.5 * math.sqrt(math.pi)))
jv = jn = _elementwise("jv", None, lambda xp, ans, n, x: 0.5 * (_use(xp, "jv")(n - 1.0, x) - _use(xp, "jv")(n + 1.0, x)))
yv = yn = _elementwise("yv", None, lambda xp, ans, n, x: 0.5 * (_use(xp, "yv")(n - 1.0, x) - _use(xp, "yv")(n + 1.0, x)))
kv = kn = _elementwise("kv", None, lambda xp, ans, n, x: -0.5 * (_use(xp, "kv")(n - 1.0, x) + _use(xp, "kv")(n + 1.0, x)))
iv = _elementwise("iv", None, lambda xp, ans, n, x: 0.5 * (_use(xp, "iv")(n - 1.0, x) + _use(xp, "iv")(n + 1.0, x)))
ive = _elementwise("ive", None, lambda xp, ans, n, x: ans * (n / x - xp.sign(x)) + _use(xp, "ive")(n + 1.0, x))

_SLOPE = 2.0 / math.sqrt(math.pi)
_erf, _erfc = _primitive(_special.erf), _primitive(_special.erfc)  # of complex numbers
for _function, _sign in ((_erf, 1.0), (_erfc, -1.0)):
    _defvjp(_function, lambda ans, x, s=_sign: lambda g: g * s * _SLOPE * _np.exp(-(x**2)))
    _defjvp(_function, lambda g, ans, x, s=_sign: g * s * _SLOPE * _np.exp(-(x**2)))
_real_erf, _real_erfc = _recorded(_special.erf, _tg.erf), _recorded(_special.erfc, _tg.erfc)
erf = _composed(_special.erf, lambda x: (_erf if _np.iscomplexobj(x) else _real_erf)(x))
erfc = _composed(_special.erfc, lambda x: (_erfc if _np.iscomplexobj(x) else _real_erfc)(x))
log_softmax = _composed(_special.log_softmax, lambda x, axis=None: x - logsumexp(x, axis, keepdims=True))
softmax = _composed(_special.softmax, lambda x, axis=None: _np.exp(x - logsumexp(x, axis, keepdims=True)))
polygamma = _recorded(_special.polygamma, lambda n, x: _tg.polygamma(int(n), x))


def _logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False):
    if return_sign:
        raise NotImplementedError("logsumexp is not recorded with return_sign=True")
    top = _np.max(_getval(a), axis=axis, keepdims=True)
    top = _np.where(_np.isfinite(top), top, 0.0)
    terms = _np.exp(a - top)
    total = _np.log(_np.sum(terms if b is None else b * terms, axis=axis, keepdims=keepdims))
    return total + (top if keepdims else _np.reshape(top, _np.shape(total)))


logsumexp = _composed(_special.logsumexp, _logsumexp)
