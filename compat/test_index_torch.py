"""One-line programs of shapes, indices, scattering and creation on both libraries: the same value, or the same error.

A program's last expression is compared: dtype, shape and elements of tensors; of an error its type and first sentence.
"""

import re
import warnings

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")

PROGRAMS = r"""
u=L.zeros(3,dtype=L.uint8); u[0]=300; u
u=L.zeros(3,dtype=L.uint8); u[0]=-1; u
u=L.zeros(3,dtype=L.uint8); u[0:2]=3.7; u
u=L.zeros(3,dtype=L.int64); u[0]=3.7; u
u=L.zeros(3); u[0]=True; u
u=L.zeros(3,dtype=L.bool); u[0]=3; u
u=L.zeros(3); u[L.tensor([0,0])]=L.tensor([1.,2.]); u
L.arange(4)[L.tensor([1,0,1,0],dtype=L.uint8)]
L.arange(4)[[True,False,True,False]]
L.arange(6).reshape(2,3)[[0,1],[1,2]]
L.arange(6).reshape(2,3)[[[0,1],[1,0]]]
L.arange(6).reshape(2,3)[True]
L.arange(6).reshape(2,3)[False]
L.arange(6).reshape(2,3)[None,...,1]
L.arange(6).reshape(2,3)[:,L.tensor(1)]
L.arange(6).reshape(2,3)[L.tensor([[0,1]])]
L.arange(6).reshape(2,3)[5]
L.arange(6).reshape(2,3)[0,0,0]
L.arange(6).reshape(2,3)[L.tensor([5])]
L.arange(6).reshape(2,3)[L.tensor([True,False,True])]
L.arange(6).reshape(2,3)[L.tensor([1.,2.])]
L.arange(6).reshape(2,3)[1.5]
L.tensor(3)[0]
L.tensor(3)[None]
L.tensor(3)[...]
L.tensor(3)[L.tensor(True)]
L.tensor(3)[True]
L.tensor(1.).index_select(0,L.tensor([0,0]))
L.tensor(1.).gather(0,L.tensor([0,0]))
L.tensor([1.,2.]).gather(0,L.tensor(1))
L.tensor(1.).index_add(0,L.tensor([0]),L.tensor([2.]))
L.tensor(1.).index_add(0,L.tensor(0),L.tensor(2.))
L.tensor(1.).index_copy(0,L.tensor(0),L.tensor(2.))
L.tensor(1.).index_copy(0,L.tensor([0]),L.tensor([2.]))
L.tensor(1.).index_fill(0,L.tensor([0]),2.)
L.tensor(1.).scatter_add(0,L.tensor([0,0]),L.tensor([2.,3]))
L.tensor(1.).scatter(0,L.tensor(0),5.)
L.zeros(4).scatter_reduce(0,L.tensor([0,0,1]),L.tensor([1,-2,-4]),'mean')
L.zeros(4).scatter_reduce(0,L.tensor([0,0,5]),L.tensor([1,-2,-4.]),'mean')
L.zeros(4,dtype=L.int64).scatter_reduce(0,L.tensor([0,0,1]),L.tensor([1,-2,-4]),'mean')
L.zeros(4,dtype=L.int64).scatter_reduce(0,L.tensor([0,0,1]),L.tensor([1,-2,-4]),'amax',include_self=False)
L.zeros(4).index_select(0,L.tensor([0,0,9]))
L.zeros(4).index_add(0,L.tensor([0,0,9]),L.ones(3))
L.zeros(4).index_copy(0,L.tensor([0,0,9]),L.ones(3))
L.zeros(4).index_fill(0,L.tensor([0,0,-1]),1.)
L.zeros(4).index_fill(0,L.tensor([0,0,9]),1.)
L.zeros(4).take(L.tensor([0,0,-1]))
L.zeros(4).take(L.tensor([0,0,-5]))
L.arange(6.).reshape(2,3).take(L.tensor([[0,4],[5,-1]]))
L.arange(6.).reshape(2,3).put(L.tensor([[0,4],[5,-1]]),L.tensor([[10.,11],[12,13]]))
L.arange(6.).reshape(2,3).put(L.tensor([1,1]),L.tensor([10.,11]),accumulate=True)
L.zeros(4).put(L.tensor([0,0,-1]),L.ones(2))
L.zeros(2,3).scatter(0,L.tensor([[0,0,1]]),L.ones(1,2))
L.zeros(2,3).scatter(0,L.tensor([0,0,1]),L.ones(1,2))
L.zeros(2,3).gather(0,L.tensor([0,0,1]))
L.zeros(2,3).gather(0,L.tensor([[0,0,1,1]]))
L.zeros(2,3).index_select(0,L.tensor([[0,0,1,1]]))
L.zeros(2,3).index_add(0,L.tensor([0,0]),L.ones(2,2))
L.zeros(2,3).index_copy(0,L.tensor([0,0]),L.ones(2,2))
L.zeros(2,3).index_copy(0,L.tensor([0,0]),L.ones(3,3))
L.zeros(2,3).index_copy(0,L.tensor([0,0]),L.ones(2,3).double())
L.zeros(2,3).index_add(0,L.tensor([0,0]),L.ones(2,3).double())
L.zeros(2,3).scatter_add(0,L.tensor([[0,0]]),L.ones(2,3).double())
L.zeros(2,3).gather(0,L.tensor([[0.,0]]))
L.zeros(2,3).masked_scatter(L.ones(2,3)>0,L.ones(5))
L.zeros(2,3).masked_scatter(L.ones(2,3)>0,L.ones(6).double())
L.zeros(2,3).masked_scatter(L.tensor([True,False,True]),L.arange(4.))
L.zeros(3).masked_scatter(L.ones(2,3)>0,L.arange(6.))
L.zeros(2,3).masked_fill(L.ones(2,2)>0,1.)
L.zeros(2,3).masked_fill(L.ones(2,3),1.)
L.zeros(2,3).masked_fill_(L.ones(3)>0,1.)
L.zeros(3).masked_fill_(L.ones(2,3)>0,1.)
L.zeros(2,3).masked_select(L.ones(2,2)>0)
L.zeros(2,3).index_put((L.tensor([0]),),L.ones(2,3))
L.zeros(2,3).index_put_((L.tensor([0,0]),),L.tensor(5.),accumulate=True)
L.select_scatter(L.zeros(2,3),L.ones(2),0,0)
L.slice_scatter(L.zeros(2,3),L.ones(2),0,0)
L.slice_scatter(L.zeros(4,2),L.ones(2,2),0,0,4,2)
L.slice_scatter(L.zeros(4,2),L.ones(2,2),0,-2)
L.zeros(2,3).diagonal_scatter(L.ones(3))
L.as_strided_scatter(L.zeros(2,3),L.ones(3),(2,),(1,))
L.zeros(2,3).as_strided((9,),(1,))
L.zeros(2,3).as_strided((2,),(-1,))
L.zeros(2,3).as_strided((2,3),(1,))
L.zeros(2,3).as_strided((-1,),(1,))
L.arange(12.).reshape(3,4)[1:].as_strided((2,2),(1,4))
L.arange(12.).reshape(3,4)[1:].as_strided((2,2),(1,4),0)
L.arange(12.).reshape(3,4).t().as_strided((2,2),(1,4))
x=L.arange(12.).reshape(3,4); x[1:,1:].as_strided((2,),(1,)).fill_(9); x
x=L.arange(12.).reshape(3,4); x.t()[1:].as_strided((2,),(3,),1).fill_(9); x
x=L.arange(6.); x.as_strided((2,3),(0,1)).add_(1)
x=L.arange(6.); x.unfold(0,2,2).add_(1); x
L.arange(7.).unfold(0,3,2)
L.zeros(2,3).unfold(0,5,1)
L.zeros(2,3).unfold(0,1,0)
L.zeros(2,3).unfold(0,-1,1)
L.zeros(()).unfold(0,1,1)
L.zeros(()).unfold(0,0,1).shape
L.zeros(2,3).unfold(2,1,1)
L.zeros(2,3).index_reduce(0,L.tensor([0,0]),L.ones(2,3),'sum')
L.zeros(2,3).scatter_reduce(0,L.tensor([[0,0]]),L.ones(2,3),'su')
L.zeros(2,3).scatter(0,L.tensor([[0,0]]),L.ones(2,3),reduce='su')
L.ones(2,3).scatter(0,L.tensor([[0,0]]),3*L.ones(2,3),reduce='multiply')
L.ones(2,3).scatter(0,L.tensor([[0,0],[0,0]]),3,reduce='add')
L.ones(2,3).scatter_(0,L.tensor([[0,0],[0,0]]),3,reduce='add')
L.ones(2,3).scatter_(0,L.tensor([[0,1],[0,0]]),3)
L.zeros(2,3).narrow(0,1,5)
L.zeros(2,3).narrow(0,3,0)
L.zeros(2,3).narrow(0,1,-1)
L.zeros(()).narrow(0,0,0)
L.zeros(2,3).select(0,5)
L.zeros(()).select(0,0)
L.zeros(2,3).split(0)
L.zeros(2,3).split([1,2])
L.zeros(2,3).split([-1,3])
L.zeros(()).split(1)
L.zeros(2,3).chunk(0)
L.zeros(0,3).chunk(3)
L.arange(5).chunk(3)
L.arange(5).tensor_split(3)
L.arange(5).tensor_split((1,7,3))
L.arange(5).tensor_split(L.tensor(3))
L.arange(5).tensor_split(L.tensor([1,3]))
L.arange(5).tensor_split(0)
L.tensor(5).tensor_split(1)
L.arange(5).hsplit(2)
L.arange(4).hsplit(2)
L.arange(4).vsplit(2)
L.arange(4).reshape(2,2).dsplit(2)
L.arange(4).reshape(2,2).vsplit([1])
L.tensor(1).hsplit(1)
L.arange(4).roll((1,2),0)
L.arange(4).roll((1,2))
L.arange(4).reshape(2,2).roll((1,1),(0,0))
L.arange(4).roll((),())
L.tensor(3).roll(1)
L.tensor(3).roll(1,0)
L.arange(4).reshape(2,2).rot90(1,(0,0))
L.arange(4).rot90()
L.arange(4).reshape(2,2).rot90(1,(0,))
L.arange(4).reshape(2,2).rot90(-1)
L.arange(4).reshape(2,2).rot90(2,(1,0))
L.arange(4).reshape(2,2).rot90(3)
L.arange(3).fliplr()
L.tensor(1).flipud()
L.arange(3).flip(1)
L.arange(3).flip(0,0)
L.hstack([L.tensor(1),L.tensor(2)])
L.vstack([L.arange(2),L.arange(2)])
L.dstack([L.arange(2),L.arange(2)])
L.column_stack([L.arange(2),L.ones(2,2)])
L.row_stack([L.arange(2),L.ones(2,2)])
L.hstack([])
L.hstack(L.ones(2))
L.atleast_1d(L.tensor(1),L.ones(2))
L.atleast_3d(L.ones(2))
L.atleast_3d(L.ones(2,3)).shape
L.atleast_2d([L.tensor(1)])
L.block_diag(L.tensor(1),L.ones(2),L.ones(2,1))
L.block_diag(L.ones(1,1,1))
L.block_diag()
L.block_diag(L.tensor([],dtype=L.int64),L.ones(1,2))
L.cartesian_prod(L.arange(2),L.arange(3))
L.cartesian_prod(L.arange(2))
L.cartesian_prod(L.ones(1,1))
L.combinations(L.arange(4),3)
L.combinations(L.arange(3),2,True)
L.combinations(L.arange(3),0)
L.combinations(L.arange(3),-1)
L.combinations(L.ones(2,2))
L.combinations(L.arange(3),5).shape
L.ones(2,3).sum_to_size(3)
L.ones(2,3).sum_to_size(2,1)
L.ones(2,3).sum_to_size(2)
L.ones(2,3).sum_to_size(1,2,3)
L.ones(2,3).sum_to_size(())
L.diagflat(L.ones(2,1))
L.diagflat(L.arange(2),1)
L.ones(2,3).diagonal(0,0,0)
L.ones(2,3).diag_embed(0,0,0)
L.ones(2).diagonal()
L.ones(2,3).diagonal(5)
L.ones(2,3).diagonal(-2)
L.diag(L.ones(2,2,2))
L.diag(L.tensor(1.))
L.ones(2,3).T
L.tensor(1.).T
L.ones(2,3).mT.shape
L.ones(2).mT
L.ones(2).H
L.ones(2,2,2).H
L.tensor(1.).H
L.ones(2).mH
L.ones(2).adjoint()
L.tensor([[1+2j,3]]).mH
L.constant_pad_nd(L.ones(2),(1,2),5)
L.constant_pad_nd(L.ones(2,3),(-1,0,1,-1),5)
L.constant_pad_nd(L.ones(2),(1,))
L.constant_pad_nd(L.ones(2),(1,1,1,1))
L.constant_pad_nd(L.ones(2),(-3,0))
L.unravel_index(L.tensor([5,3]),(2,3))
L.unravel_index(L.tensor(5),6)
L.unravel_index(L.tensor([5.]),(2,3))
L.repeat_interleave(L.tensor([1,0,2]))
L.repeat_interleave(L.arange(4).reshape(2,2),L.tensor([1,2]),0)
L.repeat_interleave(L.arange(4).reshape(2,2),L.tensor([1,2,3]),0)
L.repeat_interleave(L.arange(3),-1)
L.repeat_interleave(L.arange(3),L.tensor([[1]]))
L.argwhere(L.tensor([[1,0],[0,3]]))
L.argwhere(L.tensor(1))
L.nonzero(L.tensor(0))
L.nonzero(L.tensor(1),as_tuple=True)
L.where(L.tensor([0,1,2]))
L.where(L.tensor([[True,False]]))
L.isin(L.tensor([1,2,3]),L.tensor([2,5]))
L.isin(L.tensor([1,2,3]),2)
L.isin(2,L.tensor([1,2,3]))
L.isin(L.tensor([1,2,3]),L.tensor([2,5]),invert=True)
L.bucketize(L.tensor([1.,3,5]),L.tensor([1.,3]))
L.bucketize(L.tensor([1.,3,5]),L.tensor([1.,3]),right=True)
L.bucketize(3,L.tensor([1.,3]))
L.bucketize(L.tensor([1.]),L.ones(1,1))
L.bucketize(L.tensor([float('nan'),1]),L.tensor([1.,3]))
L.searchsorted(L.tensor([[1,3,5],[2,4,6]]),L.tensor([[3],[4]]))
L.searchsorted(L.tensor([[1,3,5],[2,4,6]]),L.tensor([[3],[4]]),side='right')
L.searchsorted(L.tensor([1,3,5]),4)
L.searchsorted(L.tensor([[1,3,5]]),L.tensor([4]))
L.searchsorted(L.tensor([5,1,3]),L.tensor([4]),sorter=L.tensor([1,2,0]))
L.searchsorted(L.tensor([1,3,5]),L.tensor([4]),out_int32=True)
L.searchsorted(L.tensor([1,3,5]),L.tensor([4]),right=True,side='left')
L.bincount(L.tensor([0,1,1,5]))
L.bincount(L.tensor([0,1,1]),L.tensor([.5,.5,1]))
L.bincount(L.tensor([0,1,1]),minlength=5)
L.bincount(L.tensor([0,-1]))
L.bincount(L.tensor([0.]))
L.bincount(L.tensor([],dtype=L.int64))
L.fill(L.ones(2),3)
L.fill(L.ones(2),L.ones(2))
L.ones(2,3).permute(0)
L.ones(2,3).squeeze((0,1)).shape
L.ones(1,3,1).squeeze((0,2)).shape
L.ones(1,3,1).squeeze((0,0)).shape
L.ones(2,3).unflatten(1,(3,-1)).shape
L.ones(2,3).unflatten(1,(2,2)).shape
L.ones(2,3).unflatten(1,()).shape
L.ones(2,3).flatten(1,0)
L.ones(2,3).expand(2)
L.ones(2,3).expand(3,3)
L.ones(2,3).expand(-1,2,3)
L.ones(2,3).expand(2,-2)
L.ones(2,3).view(5)
L.ones(2,3).t().view(6)
L.ones(2,3).view(-1,-1)
L.ones(2,3).reshape(0,-1)
L.ones(0,3).reshape(0,-1)
L.ones(2,3).repeat(2)
L.ones(2,3).repeat(2,-1)
L.ones(2,3).tile(2,2).shape
L.ones(2,3).movedim((0,1),(1,))
L.ones(2,3).movedim((0,0),(1,0))
L.ones(2,3).transpose(0,2)
L.ones(2,3).swapaxes(0,1).shape
L.ones(2,3,4).t()
L.cat([L.ones(2,3),L.ones(3,2)])
L.cat([])
L.cat([L.ones(2),L.ones(2).double()])
L.cat([L.tensor(1.),L.tensor(2.)])
L.stack([])
L.stack([L.ones(2),L.ones(3)])
L.meshgrid(L.arange(2),L.arange(2),indexing='ij')
L.meshgrid(L.arange(2),L.ones(2),indexing='ij')
L.tril_indices(2,3)
L.triu_indices(2,3,1)
L.tril(L.ones(3))
L.triu(L.arange(6).reshape(2,3),1)
L.ones(3).unbind(1)
L.tensor(1).unbind()
x=L.ones(2,3); x.t_(); x.shape
x=L.ones(2,3); x.transpose_(0,1); x.shape
x=L.ones(2,1,3); x.squeeze_(1); x.shape
x=L.ones(2,3); x.unsqueeze_(0); x.shape
x=L.ones(2,3); x.swapaxes_(0,1); x.shape
x=L.ones(2,3,requires_grad=True); x.t_()
x=L.arange(6); x.resize_(2,2); x
x=L.arange(6); x.resize_(2,2); x.resize_(2,3); x
x=L.ones(2,requires_grad=True); x.resize_(1)
x=L.arange(6); x.resize_((3,2)); x
x=L.arange(6.); x.put_(L.tensor([1,1]),L.tensor([3.,4]),accumulate=True); x
x=L.arange(6.); x.index_copy_(0,L.tensor([1,2]),L.tensor([3.,4])); x
x=L.arange(6.); x.index_reduce_(0,L.tensor([1,2,2]),L.tensor([3.,4,5]),'prod'); x
x=L.arange(6.); x.scatter_reduce_(0,L.tensor([1,2,2]),L.tensor([3.,4,5]),'amax',include_self=False); x
x=L.arange(6.); x.masked_scatter_(x>3,L.tensor([7.,8,9])); x
x=L.arange(6.); x.index_fill_(0,L.tensor([1,2]),9); x
x=L.arange(6.); x.index_add_(0,L.tensor([1,1]),L.tensor([9.,1]),alpha=2); x
x=L.tensor(1.); x.index_fill_(0,L.tensor([0]),9); x
x=L.tensor(1.); x.scatter_add_(0,L.tensor([0,0]),L.ones(2)); x
x=L.ones(2,2); x.tril_(); x
x=L.ones(3); L.take(L.arange(3.),L.tensor([2,1,0]),out=x); x
x=L.ones(3); L.gather(L.arange(3.),0,L.tensor([2,1,0]),out=x); x
x=L.ones(0); L.hstack([L.ones(1),L.ones(1)],out=x); x
x=L.ones(0,dtype=L.int64); L.searchsorted(L.tensor([1,3]),L.tensor([2,2]),out=x); x
L.ones(2,3).diagonal_copy()
L.unbind_copy(L.ones(2,1))
L.split_copy(L.arange(4),2)
L.unfold_copy(L.arange(4),0,2,1)
L.narrow_copy(L.arange(4),0,1,2)
L.expand_copy(L.ones(1),(3,))
L.view_copy(L.arange(4),(2,2))
L.as_strided_copy(L.arange(4),(2,),(2,))
L.manual_seed(0); L.rand(2,dtype=L.complex64)
L.manual_seed(0); L.randn(20,dtype=L.complex64).shape
L.manual_seed(0); L.randn(2,2,dtype=L.complex128)
L.manual_seed(0); L.randn((),dtype=L.complex128)
L.manual_seed(0); L.empty(3,dtype=L.complex64).uniform_(1,2)
L.manual_seed(0); L.empty(3,dtype=L.complex64).normal_(1,2)
L.manual_seed(0); L.poisson(L.tensor([0.,0.5,3,9,10,30,100]))
L.manual_seed(0); L.poisson(L.full((3,4),12.5,dtype=L.float64))
L.poisson(L.tensor([-1.]))
L.manual_seed(0); L.normal(L.zeros(3),L.ones(3))
L.manual_seed(0); L.normal(L.zeros(3).double(),2.)
L.manual_seed(0); L.normal(1.,L.ones(3))
L.manual_seed(0); L.normal(1.,2.,(3,))
L.normal(1.,-2.,(3,))
L.normal(L.zeros(2),-L.ones(2))
L.logspace(0,2,3)
L.logspace(0,2,3,base=2,dtype=L.float64)
L.logspace(0,2,0)
L.linspace(0,1,5)
L.linspace(0,1,1)
L.linspace(0,1,0)
L.linspace(0,1,-1)
L.linspace(0,10,4,dtype=L.int64)
L.linspace(L.tensor(0.),L.tensor(1.),3)
L.tril_indices(3,3,-1)
L.triu_indices(3,2,0,dtype=L.int32)
L.tril_indices(-1,2)
L.scalar_tensor(3)
L.scalar_tensor(3,dtype=L.int32)
L.empty_strided((2,3),(1,))
L.frombuffer(bytearray(b'\x01\x02\x03\x04'),dtype=L.uint8)
L.frombuffer(bytearray(b'\x01\x02\x03\x04'),dtype=L.int16,offset=2)
L.frombuffer(bytearray(b'\x01\x02\x03\x04'),dtype=L.int16,offset=1)
L.frombuffer(bytearray(b''),dtype=L.uint8)
L.frombuffer(bytearray(b'\x01\x02\x03\x04'),dtype=L.int16,count=3)
L.asarray([1,2.])
L.asarray(L.ones(2),dtype=L.float64)
L.asarray(L.ones(2,requires_grad=True)).requires_grad
L.asarray([1.,2],requires_grad=True).requires_grad
L.asarray([1.,2],copy=False)
a=L.ones(2); b=L.asarray(a); b[0]=5; a
a=L.ones(2); b=L.asarray(a,copy=True); b[0]=5; a
L.from_dlpack(np.arange(3.))
a=L.arange(3.); b=L.from_dlpack(a); b[0]=7; a
np.from_dlpack(L.arange(3.)).tolist()
L.ones(2,requires_grad=True).__dlpack__()
L.ones(2).__dlpack_device__()[0]*1
x=L.ones(3,dtype=L.int64); L.zeros(2,out=x); x
x=L.ones(3); L.arange(4,out=x); x
L.zeros(2,layout=L.ones(1).layout)
L.zeros(-1)
L.full((2,),3)
L.full((2,),3.5)
L.full((2,),True)
L.full((2,),1j)
L.full((),3)
L.full_like(L.ones(2),3)
L.full_like(L.ones(2,dtype=L.int64),3.7)
L.eye(2,3)
L.eye(-1)
L.arange(5,1)
L.arange(0,1,0.25)
L.arange(1,5,2)
L.arange(5,1,-2)
L.arange(0)
L.arange(3,dtype=L.float16)
L.arange(0,5,0)
L.zeros_like(L.ones(2,3).t()).stride()
L.ones(2).new_full((2,),3)
L.ones(2).new_empty_strided((2,2),(1,2)).stride()
L.ones(2).new_tensor([1,2])
L.ones(2).new_zeros(2,3)
L.ones(2).new_ones((2,3))
L.randperm(0)
L.manual_seed(1); L.randperm(5)
L.manual_seed(1); L.randint(3,(4,))
L.manual_seed(1); L.randint_like(L.ones(3),5)
L.manual_seed(1); L.randint_like(L.ones(3),2,5)
L.manual_seed(1); L.bernoulli(L.tensor([.2,.5]))
L.manual_seed(1); L.bernoulli(L.ones(5), 0.3), L.bernoulli(L.ones(2, 3, dtype=L.float64), p=0.5)
x = L.tensor([1+2j, 3+4j]); x.real = L.tensor([5., 6.]); x.imag = 7; x
L.bernoulli(L.tensor([1.2,.5]))
L.manual_seed(1); x=L.zeros(3); L.bernoulli(L.tensor([.2,.5,.9]),out=x); x
L.manual_seed(1); L.zeros(3).exponential_()
L.manual_seed(1); L.zeros(3).geometric_(0.3)
L.manual_seed(1); L.zeros(3).cauchy_()
L.manual_seed(1); L.zeros(3).log_normal_()
L.manual_seed(1); L.zeros(3).random_(4)
L.manual_seed(1); L.multinomial(L.tensor([.2,.5,.3]),2)
x = L.arange(6.).reshape(2, 3); x[0] = L.ones(2)
x = L.arange(6.).reshape(2, 3); x[:, 0] = L.tensor([7, 8]); x
x = L.arange(6.).reshape(2, 3); x[L.tensor([0, 1]), 1:] = L.tensor([[7.], [8.]]); x
x = L.arange(6.).reshape(2, 3); x[x > 2] = 0; x
x = L.arange(6.).reshape(2, 3); x[None, 0] = 5; x
x = L.arange(6.).reshape(2, 3); x[...] = L.tensor(3); x
x = L.arange(6.).reshape(2, 3); x[0, L.tensor([0, 2])] += 1; x
x = L.arange(6.).reshape(2, 3); x[3] = 1
x = L.arange(6).reshape(2, 3); x[0] = 1.9; x
x = L.zeros(2); x[0] = 1j
x = L.zeros(2, dtype=L.complex64); x[0] = 1j; x
L.arange(24).reshape(2, 3, 4)[1, :, 2:]
L.arange(24).reshape(2, 3, 4)[..., L.tensor([0, 3])]
L.arange(24).reshape(2, 3, 4)[:, L.tensor([0, 2]), L.tensor([1, 3])]
L.arange(24).reshape(2, 3, 4)[L.tensor([0]), :, L.tensor([1, 3])]
L.arange(24).reshape(2, 3, 4)[:, L.tensor([True, False, True])]
L.arange(24).reshape(2, 3, 4)[L.tensor([[True, False, True], [False, True, False]])]
L.arange(24).reshape(2, 3, 4)[L.tensor([[True, False], [False, True]])]
L.arange(24).reshape(2, 3, 4)[:, 0:3:2, None, 1]
L.arange(24).reshape(2, 3, 4)[L.tensor([0, 1]), L.tensor([0, 1, 2])]
L.arange(6).view(2, 3).view(L.int32).shape
x = L.zeros(3, 3); x.fill_diagonal_(5); x
x = L.zeros(7, 3); x.fill_diagonal_(5); x
x = L.zeros(7, 3); x.fill_diagonal_(5, wrap=True); x
x = L.zeros(3, 7); x.fill_diagonal_(5, wrap=True); x
x = L.zeros(3, 3, 3); x.fill_diagonal_(1); x
x = L.zeros(3, 2, 3); x.fill_diagonal_(1)
x = L.zeros(3); x.fill_diagonal_(1)
L.arange(12).reshape(3, 4)[1:, 1].storage_offset()
L.numel(L.ones(2, 3))
L.broadcast_shapes((2, 1), (3,))
L.broadcast_shapes((2, 4), (3,))
L.is_floating_point(L.ones(1)), L.is_complex(L.ones(1)), L.ones(1, dtype=L.uint8).is_signed()
L.is_nonzero(L.tensor([1.]))
L.ones(2).is_same_size(L.ones(2, 1))
L.manual_seed(0); L.tensor([.3, .6]).bernoulli()
L.manual_seed(0); L.zeros(3).bernoulli(0.4)
L.manual_seed(0); L.tensor([.3, .6]).multinomial(2)
L.arange(3).where(L.tensor([True, False, True]), L.tensor(9))
L.clone(L.ones(2)), L.detach(L.ones(2))
""".strip().splitlines()

# Programs in which they differ on purpose.
DIFFERENT = {
    "u=L.zeros(3); u[L.tensor([1,0,1],dtype=L.uint8)]=5; u": "bytes are a mask in reading and in writing",
    "L.arange(6).reshape(2,3)['a']": "the error says what an index may be",
    "L.zeros(2,3).index_put((None,L.tensor([0])),L.tensor(5.))": "None is an index as anywhere else",
    "x=L.ones(2); x.resize_(-1)": "the error says what is wrong",
}


def described(r):
    if isinstance(r, list | tuple) and not isinstance(r, torch.Size | tg.Size):
        return [described(v) for v in r]
    if isinstance(r, torch.Tensor | tg.Tensor):
        return str(r.dtype), tuple(r.shape), repr(r.detach().tolist())
    return tuple(r) if isinstance(r, torch.Size | tg.Size) else r


def outcome(library, program):
    """What the program's last expression gives, or the error that a line raises."""
    *before, last = program.split(";")
    names = {"L": library, "np": np}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec("\n".join(line.strip() for line in before), names)
            return described(eval(last.strip(), names))
    except Exception as e:
        return f"{type(e).__name__}: {re.split(r'[.:](?: |$)|, but', str(e))[0]}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    assert outcome(tg, program) == outcome(torch, program)


@pytest.mark.parametrize("program", DIFFERENT)
def test_difference(program):
    assert outcome(tg, program) != outcome(torch, program), "this no longer differs"


# ----------------------------------------------------------------------------------------------------- 16 bits and complex


def chain_in_place(L, x, w):
    y = x * 1
    y[0] = w[0]
    y[:, 1:].mul_(2)
    y.index_add_(0, L.tensor([1, 1]), w)
    y.diagonal().copy_(w[0, :3])
    y.t_()
    y[1:].index_fill_(1, L.tensor([2]), 0.5)
    return y


POSITIONS = [[0, 2, 1, 0], [2, 2, 0, 2]]
MASK = [True, False, True, False]
FUNCTIONS = {
    "index_add": lambda L, x, w: x.index_add(0, L.tensor([0, 0]), w),
    "index_copy": lambda L, x, w: x.index_copy(0, L.tensor([2, 0]), w),
    "index_put": lambda L, x, w: x.index_put((L.tensor([0, 2]),), w),
    "index_put, adding": lambda L, x, w: x.index_put((L.tensor([0, 0]),), w, accumulate=True),
    "scatter_add": lambda L, x, w: x.scatter_add(0, L.tensor(POSITIONS), w),
    "sum": lambda L, x, w: x.scatter_reduce(0, L.tensor(POSITIONS), w, "sum"),
    "prod": lambda L, x, w: x.scatter_reduce(0, L.tensor(POSITIONS), w, "prod"),
    "mean": lambda L, x, w: x.scatter_reduce(0, L.tensor(POSITIONS), w, "mean"),
    "amax": lambda L, x, w: x.scatter_reduce(0, L.tensor(POSITIONS), w, "amax"),
    "amin": lambda L, x, w: x.scatter_reduce(0, L.tensor(POSITIONS), w, "amin"),
    "masked_fill": lambda L, x, w: x.masked_fill(L.tensor(MASK), 1.5),
    "masked_select": lambda L, x, w: x.masked_select(L.tensor(MASK)),
    "masked_scatter": lambda L, x, w: x.masked_scatter(L.tensor(MASK), L.cat([w, w])),
    "gather": lambda L, x, w: x.gather(0, L.tensor(POSITIONS)),
    "take": lambda L, x, w: x.take(L.tensor(POSITIONS)),
    "put": lambda L, x, w: x.put(L.tensor([1, 1]), w[0, :2], accumulate=True),
    "getitem": lambda L, x, w: x[L.tensor([0, 0, 2])],
    "unfold": lambda L, x, w: x.unfold(1, 2, 1) * 2,
    "as_strided": lambda L, x, w: x.as_strided((3, 3), (2, 1)) * 2,
    "cat": lambda L, x, w: L.cat([x, w]),
    "repeat": lambda L, x, w: x.repeat(2, 2),
    "expand": lambda L, x, w: x.expand(2, 3, 4) * 1,
    "sum_to_size": lambda L, x, w: x.sum_to_size(1, 4),
    "constant_pad_nd": lambda L, x, w: L.constant_pad_nd(x, (1, 1), 2.0),
    "in place": chain_in_place,
}
NOT_IN_COMPLEX = {"sum", "prod", "mean", "amax", "amin"}


def values_and_gradients(library, dtype, function):
    """Result and gradients of half its squared size; an absent gradient as zeros."""
    a = (np.arange(12).reshape(3, 4) * 5 % 13 - 6) / 4
    v = (np.arange(8).reshape(2, 4) * 3 % 7 + 1) / 4
    x, w = (library.tensor(d.tolist(), dtype=getattr(library, dtype), requires_grad=True) for d in (a, v))
    y = function(library, x, w)
    gs = library.autograd.grad((y * y.conj()).real.sum(), (x, w), allow_unused=True)
    return [
        (str(r.dtype), r.detach().tolist())
        for r in (y, *[library.zeros_like(t) if g is None else g for g, t in zip(gs, (x, w), strict=True)])
    ]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes(name, dtype):
    if dtype == "complex64" and name in NOT_IN_COMPLEX:
        pytest.skip("PyTorch has no gradient of it")
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    for (ours, a), (theirs, b) in zip(
        *(values_and_gradients(library, dtype, FUNCTIONS[name]) for library in (tg, torch)), strict=True
    ):
        assert ours == theirs
        np.testing.assert_allclose(a, b, rtol={"bfloat16": 2e-2, "float16": 2e-3}.get(dtype, 1e-6), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64"])
def test_evenly_spaced_values_are_pytorchs_bit_for_bit(dtype):
    ours, theirs = getattr(tg, dtype), getattr(torch, dtype)
    for start, end in [(0, 1), (-1, 1), (0.1, 2.7), (-3, 5), (5, -2)]:
        for steps in (0, 1, 2, 3, 4, 7, 10, 20, 50, 100, 1000):
            got = tg.linspace(start, end, steps, dtype=ours)
            assert got.tolist() == torch.linspace(start, end, steps, dtype=theirs).tolist()
            if dtype == "int64":  # elsewhere the C library's power may round otherwise
                got = tg.logspace(start, end, steps, dtype=ours)
                assert got.tolist() == torch.logspace(start, end, steps, dtype=theirs).tolist()
        for step in (0.01, 0.1, 0.3, 0.05, 0.25, 1 / 3):
            if dtype in ("float32", "float64") and start < end:
                got = tg.arange(start, end, step, dtype=ours)
                assert got.tolist() == torch.arange(start, end, step, dtype=theirs).tolist()
    assert tg.arange(5.5, dtype=tg.int64).tolist() == [0, 1, 2, 3, 4]
