"""PyTorch's public names are here, with their arguments; what is missing is listed with its reason, strictly."""

import inspect
import re
import types
import warnings

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
F = torch.nn.functional

# Private names; sparse, quantised and nested tensors; other devices and their libraries; symbolic sizes
OUT_OF_SCOPE = re.compile(
    r"_.*|.*(sparse|quant|qparams|qscheme|nested|padded|fbgemm|cudnn|miopen|mkldnn|vulkan|autocast|xla|xpu|ipu|mtia).*"
    r"|q_.*|sym_.*|smm|dsmm|hsmm|hspmm|spmm|saddmm|sspaddmm|int_repr|.*indices_copy|(ccol_|row_)indices|values_copy"
)
KERNEL = "a kernel of PyTorch's own, no operation for programs"
SETTING = "a setting of PyTorch's own machinery"
COMPILER = "of PyTorch's compiler and its scripts"
MEMORY = "of PyTorch's memory blocks"
MISSING = {
    **dict.fromkeys(
        ("batch_norm_backward_elemt", "batch_norm_backward_reduce", "batch_norm_elemt", "batch_norm_gather_stats",
         "batch_norm_gather_stats_with_counts", "batch_norm_stats", "batch_norm_update_stats", "native_norm",
         "segment_reduce", "slice_inverse", "hash_tensor"),
        KERNEL,
    ),
    **dict.fromkeys(("init_num_threads", "thread_safe_generator", "compiled_with_cxx11_abi"), SETTING),
    **dict.fromkeys(
        ("fork", "get_file_path", "import_ir_module", "import_ir_module_from_buffer",
         "merge_type_from_type_comment", "parse_ir", "parse_schema", "parse_type_comment", "unify_type_list",
         "prepare_multiprocessing_environment", "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12",
         "classproperty", "wait"),
        COMPILER,
    ),
    **dict.fromkeys(("is_distributed",), MEMORY),
}  # fmt: skip
MISSING_METHODS = {
    **dict.fromkeys(("record_stream", "storage_type"), MEMORY),
    **dict.fromkeys(("slice_inverse", "hash_tensor", "index", "reinforce", "grad_dtype"), KERNEL),
}  # fmt: skip


def functions(module):
    kinds = types.FunctionType | types.BuiltinFunctionType
    names = [n for n in dir(module) if isinstance(getattr(module, n), kinds)]
    return {n for n in names if not OUT_OF_SCOPE.fullmatch(n)}


def missing_from(ours, names):
    return {name for name in names if not hasattr(ours, name)}


def test_page():
    assert missing_from(tg, functions(torch)) == set(MISSING)


def test_methods():
    names = {n for n in dir(torch.Tensor) if not OUT_OF_SCOPE.fullmatch(n)}
    assert missing_from(tg.Tensor, names) == set(MISSING_METHODS)


NO_OPERATIONS = {"assert_int_or_pair", "boolean_dispatch", "handle_torch_function", "has_torch_function"}
MISSING_ELSEWHERE = {
    "masked": {"as_masked_tensor", "is_masked_tensor", "masked_tensor"},
    "linalg": {"ldl_factor", "ldl_factor_ex", "ldl_solve"},
    "nn.functional": {*NO_OPERATIONS, "has_torch_function_unary", "has_torch_function_variadic", "grouped_mm",
                      "scaled_grouped_mm", "scaled_mm"},
}  # fmt: skip


@pytest.mark.parametrize("module", ["linalg", "fft", "special", "nn.functional", "masked"])
def test_modules(module):
    theirs, ours = torch, tg
    for part in module.split("."):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    assert missing_from(ours, functions(theirs)) == MISSING_ELSEWHERE.get(module, set())


# Their documented text has "out=", but PyTorch refuses the keyword, or it says nothing of where the result goes.
NO_OUT = {"bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window", "histogramdd"}


@pytest.mark.parametrize("module", ["", "linalg", "fft", "special"])
def test_functions_take_out_where_pytorchs_do(module):
    theirs, ours = (getattr(m, module) if module else m for m in (torch, tg))
    lacking = set()
    for name in functions(theirs) - {*MISSING, *MISSING_ELSEWHERE.get(module, ())}:
        documented = (getattr(theirs, name).__doc__ or "").partition("Args:")[0]
        kinds = {p.name: p.kind for p in inspect.signature(getattr(ours, name)).parameters.values()}
        if "out=" in documented and "out" not in kinds and inspect.Parameter.VAR_KEYWORD not in kinds.values():
            lacking.add(name)
    assert lacking <= NO_OUT


OWN_METHODS = {
    "resize_as_result_": "what `out=` writes with",
    "strides": "NumPy's, which matplotlib reads",
    "to_device": "the array API standard's",
    "to_numpy": "what matplotlib and data frames call",
    "zeros_": "an older name of zero_",
}


def test_methods_of_our_own():
    public = {n for n in dir(tg.Tensor) if not n.startswith("_")}
    own = {n for n in public if not hasattr(torch.Tensor, n)}
    assert own == set(OWN_METHODS), "OWN_METHODS here names the methods that PyTorch lacks, each with its reason"


def in_place(module):
    return {n for n in dir(module) if n.endswith("_") and not n.startswith("_") and "sparse" not in n}


def test_functions_in_place():
    assert in_place(tg) == in_place(torch)


def native(name):
    """Arguments of a function that PyTorch builds in, by its first schema."""
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    return [a.name for a in schemas[0].arguments]


REORDERED = [
    "dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout", "alpha_dropout_", "feature_alpha_dropout",
    "feature_alpha_dropout_", "native_dropout", "batch_norm", "instance_norm", "embedding", "embedding_renorm_",
    "adaptive_max_pool1d", "affine_grid_generator", "convolution", "conv_tbc", "binary_cross_entropy_with_logits",
    "cosine_embedding_loss", "ctc_loss", "hinge_embedding_loss", "kl_div", "margin_ranking_loss", "poisson_nll_loss",
    "triplet_margin_loss", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "avg_pool1d", "adaptive_avg_pool1d", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle",
    "norm_except_dim", "slice_copy", "nonzero_static", "bilinear", "native_layer_norm", "native_group_norm",
    "native_batch_norm", "rms_norm", "pairwise_distance", "cosine_similarity", "pdist", "can_cast",
    "celu", "selu", "threshold", "prelu", "hardshrink", "max_pool1d", "max_pool2d", "max_pool3d", "grid_sampler", "softmax",
    "log_softmax",
]  # fmt: skip


@pytest.mark.parametrize("name", REORDERED)
def test_order_of_arguments(name):
    ours = list(inspect.signature(getattr(tg, name)).parameters)
    theirs = native(name)
    theirs[0] = {"self": ours[0]}.get(theirs[0], theirs[0])
    assert ours[: len(theirs)] == theirs


PROGRAMS = r"""
L.dropout(x,0.5,False)
L.dropout(x,0.0,True)
L.dropout(x,1.0,True)
L.dropout(x,1.5,True)
L.manual_seed(1); L.dropout(x,0.5,True)
L.manual_seed(1); y=x.clone(); L.dropout_(y,0.5,True); y
L.manual_seed(1); L.feature_dropout(x,0.5,True)
L.manual_seed(1); L.alpha_dropout(x,0.5,True)
L.manual_seed(1); L.feature_alpha_dropout(x,0.5,True)
L.manual_seed(1); L.native_dropout(x,0.5,True)
L.native_dropout(x,0.5,False)
L.batch_norm(x,w3,b3,None,None,True,0.1,1e-5,False)
m,v=L.zeros(3),L.ones(3); L.batch_norm(x,w3,b3,m,v,True,0.1,1e-5,False), m, v
L.batch_norm(x,w3,b3,L.zeros(3),L.ones(3),False,0.1,1e-5,False)
L.instance_norm(x,w3,b3,None,None,True,0.1,1e-5,False)
L.embedding(w,L.tensor([0,2,1]))
L.embedding(w,L.tensor([0,2,1]),1)
L.embedding(w,L.tensor([0,9]))
y=w.clone(); L.embedding_renorm_(y,L.tensor([0,2]),1.0,2.0); y
L.embedding_renorm_(b3,L.tensor([0]),1.0,2.0)
L.adaptive_max_pool1d(x,2)
L.affine_grid_generator(L.ones(1,2,3),(1,1,2,3),True)
L.conv_tbc(x,L.ones(2,4,5),L.zeros(5),1)
L.convolution(x,L.ones(5,3,2),None,[1],[1],[1],False,[0],1)
L.convolution(x,L.ones(3,5,2),L.ones(5),[2],[1],[1],True,[1],1)
L.hinge_embedding_loss(w,w.sign())
L.kl_div(w,w.abs())
L.margin_ranking_loss(w,w.flip(0),w.sign())
L.hinge_embedding_loss(w,w.sign(),1.0,0)
L.hinge_embedding_loss(w,w.sign(),reduction=2)
L.kl_div(w,w.abs(),0)
L.kl_div(w,w,1,log_target=True)
L.binary_cross_entropy_with_logits(w,w.abs(),None,None,2)
L.cosine_embedding_loss(w,w+1,L.tensor([1.,-1.,1.]),0.1,0)
L.margin_ranking_loss(w,w.flip(0),w.sign(),0.5,1)
L.poisson_nll_loss(w,w.abs(),True,False,1e-8,1)
L.triplet_margin_loss(w,w+1,w-2,1.0,2.0,1e-6,False,0)
L.ctc_loss(x.log_softmax(2),L.tensor([[1,2],[1,1],[3,1]]),[2,2,2],[1,1,1],0,1,False)
L.ctc_loss(x.log_softmax(2),L.tensor([[1,2],[1,1],[3,1]]),L.tensor([2,2,2]),L.tensor([1,1,1]),reduction=0)
L.norm_except_dim(x)
L.norm_except_dim(x,2,1)
L.norm_except_dim(x,1,2)
L.norm_except_dim(x,2,-1)
L.nuclear_norm(w)
L.nuclear_norm(x,(1,2),True)
L.frobenius_norm(x,(0,2))
L.native_channel_shuffle(L.ones(1,4,2),2)
L.exp_(x.clone())
y=x.clone(); L.clamp_(y,-0.5,0.5) is y
y=x.abs(); L.xlogy_(y,y)
L.nan_to_num_(L.tensor([float('nan'),1.]))
L.index_put_(w.clone(),(L.tensor([0]),),L.zeros(4))
L.fix_(x.clone())
L.detach_copy(x)
L.slice_copy(x,2,1,3)
L.slice_copy(x,-1,None,None,2)
L.slice_copy(x,5)
L.view_as_real_copy(L.tensor([1+2j]))
L.view_as_complex_copy(w.reshape(6,2))
L.nonzero_static(w,size=2)
L.nonzero_static(L.eye(2),size=4,fill_value=7)
L.nonzero_static(w,size=-1)
L.range(0,3)
L.range(0,1,0.25)
L.range(3,0)
L.range(3,0,-1,dtype=L.int64)
L.range(0,1,0)
L.result_type(w,1.0) is L.float32
L.result_type(L.tensor([1]),L.tensor(1.0,dtype=L.float64)) is L.float32
L.result_type(1,2.0) is L.float32
[L.can_cast(a,b) for a in (L.bool,L.uint8,L.int64,L.float32,L.complex64) for b in (L.bool,L.uint8,L.float16,L.complex64)]
L.get_device(w), w.get_device()
L.empty_permuted((2,3,4),(1,2,0)).stride()
L.histogramdd(w[:,:2],[2,3])
L.histogramdd(w[:,:2],2,range=[-1.,1.,-2.,2.],weight=L.tensor([1.,2.,3.]),density=True)
L.histogramdd(w[:,:2],[L.tensor([-1.,0.,1.]),L.tensor([1.,-1.])])
L.histogramdd(L.tensor([[0.,1.],[1.,1.],[2.,3.]]),[L.tensor([0.,1.,1.,2.]),L.tensor([0.,1.,3.])])
L.histogramdd(b3,[2])
L.geqrf(w)
L.geqrf(x.double())
L.geqrf(L.complex(w,w+1))
a,t=L.geqrf(w.T); L.orgqr(a,t) @ a[:3].triu()
reversed(w), reversed(L.tensor(3))
w.new(2,3).shape
w.new([1,2])
L.tensor([1]).new([1.5,2.5])
w.to_dense() is w
w.resize(2,6)
w.resize(5)
w.resize_as(L.ones(4,3))
w.dim_order(), w.t().dim_order()
w.is_set_to(w), w.is_set_to(w.view(3,4)), w.is_set_to(w.t()), w.is_set_to(w.clone())
w.is_pinned(), w.is_shared(), w.is_meta, w.is_mps, w.is_quantized, w.is_sparse
w.sparse_dim(), w.dense_dim()
w.clone().apply_(lambda v: v+1)
w.clone().map_(L.ones(4),lambda a,b: a*b+1)
w.clone().map2_(L.ones(4),L.ones(3,1),lambda a,b,c: a-b+c)
w.clone().requires_grad_().apply_(abs)
w.map_(L.ones(4,dtype=L.int64),lambda a,b: a)
w.pin_memory()
w.solve(w)
L.symeig(w)
L.eig(w)
L.lstsq(w,w)
L.matrix_rank(w)
L.FloatTensor([1,2])
L.LongTensor(2,0)
L.DoubleTensor([[1],[2]]).type()
isinstance(w,L.FloatTensor), isinstance(w,L.LongTensor)
w.type('torch.DoubleTensor')
w.type(L.IntTensor)
w.type('torch.Foo')
L.set_default_tensor_type(L.LongTensor)
L.set_default_tensor_type(L.float32)
L.set_default_tensor_type('torch.DoubleTensor'); y=L.ones(1); L.set_default_tensor_type(L.FloatTensor); y
L.get_default_device()
L.pi, L.e, L.inf, L.newaxis
L.softmax(L.tensor([1,2]),0)
L.softmax(L.ones(2,2,dtype=L.int32),0)
L.log_softmax(L.tensor([True]),0)
L.softmax(L.ones(0,2,dtype=L.int64),0)
L.tensor([1,2]).softmax(0,dtype=L.float32)
i=L.tensor([[1,2],[3,4]]); v=i[0]; L.addmv(v,i,v,beta=2.6,alpha=1.9)
i=L.tensor([[1,2],[3,4]]); v=i[0]; L.addmv(v,i,v,beta=float('nan'))
i=L.tensor([[1,2],[3,4]]); L.addmm(i,i,i,beta=-1.6)
i=L.tensor([[[1,2],[3,4]]]); L.baddbmm(i,i,i,beta=0.6), L.addbmm(i[0],i,i,alpha=2.5)
i=L.tensor([1,2]); L.addr(L.ones(2,2,dtype=L.int64),i,i,beta=0.5)
i=L.tensor([True,False]); L.addr(L.tensor([[False,True],[False,False]]),i,i,beta=2)
i=L.tensor([True,False]); L.addr(L.tensor([[False,True],[False,False]]),i,i,beta=0)
i=L.tensor([[1,2],[3,4]],dtype=L.int32); [i.sum_to_size(*s) for s in ((2,1),(2,2),(1,2))], i[0,0].sum_to_size(())
i=L.tensor([[1,2],[3,4]],dtype=L.int32); [L.einsum(e,i,i) for e in ('ij,ij->','ij,jk->ik','ij,kl->i','ij,ik->')]
i=L.tensor([[1,2],[3,4]],dtype=L.int32); L.einsum('ij->',i), L.einsum('ii->',i), L.einsum('ij->ji',i)
i=L.tensor([[1,2],[3,4]],dtype=L.uint8); L.tensordot(i,i[:,:1],([1],[1]))
L.masked.argmax(w,1), L.masked.argmin(w.int(),1,dtype=L.int16)
L.Tensor((2,3)), L.Tensor((1.5,3)), L.Tensor(((1,2),(3,4))), L.Tensor(()), L.LongTensor((2,3)), L.ones(1).new((2.5,3))
L.Tensor(L.Size([2,3])).shape, L.Tensor(L.tensor(2),3).shape, L.Tensor(size=(2,3)).shape, L.Tensor(L.tensor([1,2]))
x=L.ones(2); y=L.Tensor(x); y[0]=5; z=L.FloatTensor(x); z[1]=7; x, L.Tensor(L.ones(2,requires_grad=True))
S=type('S',(L.Tensor,),{}); S(L.ones(2,2)), [S([1.])], type(S([1.])).__name__
L.finfo(float).bits, L.iinfo(int).bits, L.promote_types(float,L.int), L.can_cast(float,L.int)
L.ones(2).to(float), L.ones(2).to(int), L.nn.Linear(1,1).to(float).weight.dtype
L.ones(2).type(L.Tensor), L.tensor([1]).type('torch.Tensor')
L.Tensor(True)
L.masked.logsumexp(w.int(),1,mask=w>0)
L.nn.functional.silu(L.tensor([1+2j,-3j],dtype=L.complex64))
g=L.zeros(1,2,2,2,requires_grad=True); L.grid_sampler(L.ones(1,1,3,3),g,1,0,True).sum().backward(); g.grad
""".strip().splitlines()


def outcome(library, program):
    rng = np.random.default_rng(3)
    names = {"L": library, "float": float}
    for name, shape in {"x": (2, 3, 4), "w": (3, 4), "w3": (3,), "b3": (3,)}.items():
        names[name] = library.tensor(rng.standard_normal(shape).astype(np.float32).tolist())
    *before, last = re.split(r"; ", program)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for statement in before:
                exec(statement, names)
            return plain(eval(last, names))
    except Exception as error:
        return type(error).__mro__, re.split(r"(?<=[a-z)\]])[.:,] |\n", str(error))[0].rstrip(".")


def plain(value):
    if isinstance(value, tg.Tensor | torch.Tensor):
        return str(value.dtype), tuple(value.shape), np.asarray(value.detach().tolist())
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def same(ours, theirs):
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, tuple) and len(theirs) == 3:
        return ours[:2] == theirs[:2] and np.allclose(ours[2], theirs[2], rtol=2e-5, atol=1e-6, equal_nan=True)
    if isinstance(theirs, tuple):  # of an error
        return ours[1] == theirs[1] and issubclass(ours[0][0], theirs[0][0])
    return ours == theirs


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    ours, theirs = outcome(tg, program), outcome(torch, program)
    assert same(ours, theirs), (ours, theirs)
