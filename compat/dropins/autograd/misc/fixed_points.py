"""Fixed points, differentiated without their iteration."""

from autograd import make_vjp
from autograd.extend import defvjp, primitive, vspace


@primitive
def fixed_point(f, a, x0, distance, tol):
    """The x with f(a)(x) = x that the iteration from x0 reaches, until distance(x, previous x) <= tol."""
    step = f(a)
    x, previous = step(x0), x0
    while distance(x, previous) > tol:
        x, previous = step(x), x
    return x


def _vjp(ans, f, a, x0, distance, tol):
    def reverse(params):
        a, x, g = params
        vjp_x, _ = make_vjp(f(a))(x)
        return lambda u: vspace(x).add(vjp_x(u), g)

    vjp_a, _ = make_vjp(lambda a, x: f(a)(x))(a, ans)
    return lambda g: vjp_a(fixed_point(reverse, (a, ans, g), vspace(x0).zeros(), distance, tol))


defvjp(fixed_point, None, _vjp, None)
