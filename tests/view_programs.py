"""Programs of views, writes in place and reads, run on tapegrad and on PyTorch: program(lib, x, w), x (3, 4), w (4,)."""

import numpy as np

X = np.linspace(0.3, 1.4, 12).reshape(3, 4)
W = np.array([0.5, -0.7, 1.1, 0.9])
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def is_torch(lib):
    return lib.__name__ == "torch"


def zeros(lib, *shape):
    return lib.zeros(*shape, dtype=lib.float64)


@program
def row_mul(lib, x, w):
    a = x.clone()
    y = a[0]
    y.mul_(w)
    return a * a


@program
def view_then_read_view(lib, x, w):
    a = x * 1.0
    y = a[1]
    a.mul_(2.0)
    return y * y * w


@program
def sibling_views(lib, x, w):
    a = x * w
    y = a[0]
    z = a[0:2]
    y.add_(w)
    return z * z


@program
def view_of_view(lib, x, w):
    a = x * w
    y = a[1:]
    z = y[0]
    z.mul_(w)
    return a * y[1]


@program
def transpose_view(lib, x, w):
    a = x * 1.0
    b = a.T
    b[1].mul_(3.0)
    return a * a * w


@program
def reshape_view(lib, x, w):
    a = x * 1.0
    v = a.reshape(12)
    v[2:7].mul_(2.0)
    a.mul_(a)
    return v * v


@program
def fill_rows(lib, x, w):
    b = zeros(lib, 3, 4)
    for i in range(3):
        b[i] = x[i] * w
    return b * b


@program
def fill_elements(lib, x, w):
    b = zeros(lib, 4)
    for i in range(4):
        b[i] = (x[0] * w)[i] * (b[i - 1] + 1.0 if i else 1.0)
    return b * x


@program
def setitem_mask(lib, x, w):
    a = x * w
    a[:, lib.tensor([True, False, True, True])] = 2.0
    return a * a * x


@program
def setitem_integers(lib, x, w):
    a = x * w
    a[[0, 2]] = w * w
    return a * a


@program
def setitem_broadcast(lib, x, w):
    a = x * 1.0
    a[1:] = w
    return a * a


@program
def self_mul(lib, x, w):
    a = x * 1.0
    a.mul_(a)
    a.mul_(a)
    return a * w


@program
def saved_then_mutated(lib, x, w):
    a = x * w
    b = a.sin()
    a.mul_(2.0)
    return b + a * a


@program
def exp_then_mutated(lib, x, w):
    b = x.exp()
    c = b * w
    b.add_(1.0)
    return b * c


@program
def exp_inplace(lib, x, w):
    a = x * w
    a.exp_()
    return a * a


@program
def sin_inplace_view(lib, x, w):
    a = x * w
    a[1].sin_()
    return a * x


@program
def view_saved_then_base_mutated(lib, x, w):
    a = x * w
    y = a[0]
    z = y * y
    a.add_(1.0)
    return z * a + y


@program
def detach_shares(lib, x, w):
    a = x * w
    d = a.detach()
    d[0] = 0.0
    return a * w


@program
def detach_write_after_save(lib, x, w):
    a = x * w
    b = a * a
    d = a.detach()
    d.mul_(0.0)
    return b * w + a.sin() * 0.0


@program
def detach_copy_snapshot(lib, x, w):
    a = x * w
    d = a.detach()
    a.mul_(2.0)
    return a * d.clone()


@program
def no_grad_update_between(lib, x, w):
    b = (x * w).sin()
    with lib.no_grad():
        v = x.clone()
        v.mul_(2.0)
    return b * v


@program
def copy_into_view(lib, x, w):
    a = zeros(lib, 3, 4)
    a[1].copy_(x[1] * w)
    a[2].copy_(w)
    return a * a + x


@program
def zero_view(lib, x, w):
    a = x * w
    a[0].zero_()
    return a * a + w


@program
def iadd_view(lib, x, w):
    a = x * w
    y = a[2]
    y += x[0] * x[0]
    y *= w
    return a * a


@program
def chunk_update(lib, x, w):
    a = x * w
    u, v = a[:, :2], a[:, 2:]
    u = u * 1.0
    v.mul_(u)
    return a * a


@program
def numpy_alias_after_save(lib, x, w):
    n = W.copy()
    b = x * lib.from_numpy(n) * w
    if not is_torch(lib):  # PyTorch's gradient would follow the write
        n[:] = 7.0
    return b * b


@program
def buffer_reused(lib, x, w):
    buffer = zeros(lib, 4)
    out = zeros(lib, 4)
    for i in range(3):
        buffer.copy_(x[i] * w)
        out = out + buffer * buffer
    return out


@program
def running_state(lib, x, w):
    h = zeros(lib, 4)
    for i in range(3):
        h = h.clone()
        h[1:] = h[:3] + x[i][1:] * w[1:]
        h[0] = x[i].sum()
    return h * h


@program
def overlap_shift(lib, x, w):
    a = x * w
    a[1:] = a[:2].clone() if is_torch(lib) else a[:2]
    return a * a


@program
def write_through_transpose_and_reshape(lib, x, w):
    a = x * w
    a.T[0:2].mul_(3.0)
    b = a.reshape(2, 6)
    b[0].mul_(b[1])
    return a * a


@program
def interleaved_row_views(lib, x, w):
    a = x * w
    rows = [a[i] for i in range(3)]
    for _ in range(2):
        for i in range(3):
            rows[i].mul_(rows[(i + 1) % 3])
    return a * rows[0]


@program
def data_rebind(lib, x, w):
    a = x * 1.0
    b = (w * w).detach()
    c = w * b
    if is_torch(lib):  # the saved b would follow `.data =`
        b = b * 3.0
    else:
        b.data = b * 3.0
    return a * b * c


@program
def scalar_view_write(lib, x, w):
    a = x[0] * w
    s = a[1]
    s.mul_(3.0)
    s += a[0]
    return a * a * s


@program
def detached_view_written(lib, x, w):
    a = x * w
    v = a[0]
    d = v.detach()
    d.mul_(2.0)
    v.mul_(w)
    return a * v


@program
def view_before_and_after_write(lib, x, w):
    a = x * w
    y = a[0]
    p = y * y
    a[0] = w * w
    q = y * y
    z = a[0]
    return p + q * z


@program
def setitem_from_own_view(lib, x, w):
    a = x * w
    a[0] = a[1] * a[2]
    a[1] = a[0] * a[0]
    return a * a


@program
def write_under_no_grad(lib, x, w):
    a = x * w
    with lib.no_grad():
        a.mul_(2.0)
    return a * w


@program
def expand_read(lib, x, w):
    e = w.reshape(1, 4).expand(3, 4)
    a = e * x
    a[0].mul_(e[1])
    return a * e


@program
def view_of_leaf_read(lib, x, w):
    v = x.reshape(12)
    a = v * 1.0
    a[3:5] = v[0:2] * v[1:3]
    return a * a


@program
def dead_base(lib, x, w):
    y = (x * w)[1]
    y.mul_(w)
    y[0] = w[1]
    return y * y


@program
def iterative_solver(lib, x, w):
    u = zeros(lib, 4)
    for _ in range(4):
        u[1:3] = (u[0:2] * 1.0 + u[2:4] * 1.0) * 0.5 + x[0][1:3] * w[1:3] * u[1:3].exp()
    return u * u


@program
def unfold_read_and_write(lib, x, w):
    a = x * w
    u = a.unfold(1, 2, 2)
    u[:, 0].mul_(w[:2])
    return u.sum(-1) * a[:, :2] + a.unfold(0, 2, 1).sum(0).sum() * 0.1


@program
def strided_window_written(lib, x, w):
    a = x * w
    a.as_strided((3, 2), (4, 2), 1).mul_(w[:2])
    return a * a


@program
def strided_view_of_view_read(lib, x, w):
    a = x * w
    v = a[1:, 1:]
    s = v.as_strided((2, 2), (1, 4))
    a.mul_(2.0)
    return s * s * w[:2]


@program
def overlapping_windows_read(lib, x, w):
    a = x * w
    s = a.as_strided((3, 3), (2, 1))
    return s * s.sin()


@program
def diagonal_written(lib, x, w):
    a = x * w
    a.diagonal(1).mul_(w[:3])
    a[:, 1:].diagonal(-1).copy_(w[:2])
    return a * a


@program
def split_parts_written(lib, x, w):
    a = x * w
    b, c = a.narrow(1, 0, 2), a.narrow(-1, -2, 2)
    if not is_torch(lib):  # which refuses to write into one of several views
        b, c = a.tensor_split(2, 1)
    b = b * 1.0
    c.mul_(b)
    return a * a * c.sum()


@program
def movedim_unflatten_written(lib, x, w):
    a = x * w
    m = a.movedim(0, 1).unflatten(0, (2, 2))
    m[1, 0].mul_(x[:, 0])
    return a * a


@program
def index_add_in_place(lib, x, w):
    a = x * w
    a.index_add_(0, lib.tensor([0, 2, 0]), x * x)
    return a * a


@program
def index_add_to_view(lib, x, w):
    a = x * w
    a[1:].index_add_(1, lib.tensor([0, 3, 3]), x[:2, :3] * w[:3])
    return a * a


@program
def index_copy_and_fill(lib, x, w):
    a = x * w
    a.index_copy_(1, lib.tensor([3, 0]), x[:, 1:3] * w[:2])
    a.T.index_fill_(0, lib.tensor([1]), 0.3)
    return a * a


@program
def index_put_in_place(lib, x, w):
    a = x * w
    a.index_put_((lib.tensor([0, 2]), lib.tensor([1, 3])), w[:2] * w[:2])
    a.index_put_((lib.tensor([0, 0, 1]),), x * w, accumulate=True)
    return a * a


@program
def scatter_in_place(lib, x, w):
    a = x * w
    positions = lib.tensor([[0, 1, 2, 0], [2, 2, 0, 1]])
    a.scatter_add_(0, positions, x[:2] * x[:2])
    a.scatter_(1, lib.tensor([[3], [0], [1]]), x[:, :1] * w[:1])
    return a * a


@program
def scatter_reduce_in_place(lib, x, w):
    a = x * w
    positions = lib.tensor([[0, 1, 2, 0], [2, 2, 0, 1]])
    a.scatter_reduce_(0, positions, x[1:] * x[1:], "prod")
    a[1:].scatter_reduce_(0, positions - positions + 1, x[:2] * 1.7, "amax", include_self=False)
    return a * a


@program
def put_in_place(lib, x, w):
    a = x * w
    a.put_(lib.tensor([0, 5, 11]), w[:3] * w[1:])
    a.T.put_(lib.tensor([1, 1, 4]), w[:3], accumulate=True)
    return a * a


@program
def masked_in_place(lib, x, w):
    a = x * w
    m = lib.tensor([[True, False, True, False]] * 3)
    a.masked_scatter_(m, x.reshape(12) * 2.0)
    a[0].masked_fill_(m[0], w[0])
    return a * a


@program
def turned_in_place(lib, x, w):
    a = x * w
    a.t_()
    a.unsqueeze_(0)
    a[0, 1].mul_(x[:, 0])
    a.squeeze_(0)
    a.transpose_(0, 1)
    return a * a


@program
def view_turned_in_place(lib, x, w):
    a = x * w
    v = a[1:]
    v.t_()
    v[0].mul_(w[:2])
    v.swapaxes_(0, 1)
    return a * a + v.sum()


@program
def zero_dim_written(lib, x, w):
    a = (x * w).sum()
    a.index_fill_(0, lib.tensor([0]), 2.0)
    b = (x * x).sum()
    b.scatter_add_(0, lib.tensor([0]), w[:1])
    b.put_(lib.tensor([0]), b.clone().reshape(1), accumulate=True)
    return a * b * w


@program
def parts_written_over(lib, x, w):
    a = lib.select_scatter(x, w * w, 0, 1)
    b = lib.slice_scatter(a, x[:, :2] * w[:2], 1, 0, 4, 2)
    return lib.diagonal_scatter(b, w[:3], 1) * a


@program
def fill_rows_of_rows(lib, x, w):
    b = zeros(lib, 2, 3, 4)
    for i in range(2):
        for j in range(3):
            b[i][j] = x[j] * w * (b[i - 1][j] + 1.0 if i else 1.0)
    return b * b


# Programs that declare part of what they compute constant: finite differences do not apply.
CONSTANTS = {
    "detached_view_written", "write_under_no_grad", "detach_shares", "detach_copy_snapshot", "detach_write_after_save",
    "no_grad_update_between", "data_rebind",
}  # fmt: skip


def array(t):
    return t.detach().numpy().copy()


def run(lib, function, x, w, order):
    """[output, loss], or the loss's gradient by x and w, or the gradient of half that gradient's square."""
    x, w = (lib.tensor(v, requires_grad=True, dtype=lib.float64) for v in (x, w))
    out = function(lib, x, w)
    loss = (out * out).sum()
    if order == 0:
        return [array(out), array(loss)]
    grad = lib.autograd.grad
    first = grad(loss, [x, w], create_graph=order == 2, allow_unused=True)
    if order == 2:
        half_square = sum((g * g * 0.5).sum() for g in first if g is not None)
        first = grad(half_square, [x, w], allow_unused=True)
    return [np.zeros(v.shape) if g is None else array(g) for g, v in zip(first, (x, w), strict=True)]


def finite_differences(lib, function, order, step=1e-6):
    """What `run` gives for order 1 or 2, from central differences of the order below."""

    def value(x, w):
        if order == 1:
            return run(lib, function, x, w, 0)[1]
        return sum((g * g * 0.5).sum() for g in run(lib, function, x, w, 1))

    result = []
    for k, point in enumerate((X, W)):
        d = np.zeros_like(point)
        for i in np.ndindex(point.shape):
            ends = []
            for h in (step, -step):
                at = [X.copy(), W.copy()]
                at[k][i] += h
                ends.append(value(*at))
            d[i] = (ends[0] - ends[1]) / (2 * step)
        result.append(d)
    return result


def error(got, expected):
    """Largest difference, relative to the largest expected value where that is above 1."""
    return max(np.abs(a - b).max() / max(1.0, np.abs(b).max()) for a, b in zip(got, expected, strict=True))
