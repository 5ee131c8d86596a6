"""Graph convolution with sparse matrices, and graph attention, on a generated graph of two kinds of nodes."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(42)
rng = np.random.default_rng(0)
N = 60
labels = rng.integers(0, 3, N)
words = (rng.random((N, 24)) < np.where(np.arange(24) % 3 == labels[:, None], 0.4, 0.1)).astype(np.int32)
odds = np.where(labels[:, None] == labels, 0.12, 0.01) * (1 - np.eye(N))
edges = np.argwhere(rng.random((N, N)) < odds)

features = torch.FloatTensor(words)
scale = 1 / torch.sum(features, dim=1)
scale[scale == float("inf")] = 0
features = torch.diag(scale).to_sparse() @ features
target = torch.LongTensor(labels)
adj = torch.sparse_coo_tensor(edges.T, torch.ones(len(edges)), (N, N), dtype=torch.int64)
print(adj._nnz(), adj.shape, adj.dtype, adj.layout, adj.is_sparse)
adj = torch.eye(N) + adj
degree = torch.diag(torch.sqrt(1 / torch.sum(adj, dim=1))).to_sparse()
normal = (degree @ adj @ degree).to_sparse()
print(normal.coalesce().values()[:4], torch.sparse.sum(normal))
print(torch.eye(2).to_sparse())


class GraphConv(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.kernel = nn.Parameter(torch.Tensor(n, m))
        nn.init.xavier_normal_(self.kernel)

    def forward(self, x, adj):
        return torch.spmm(adj, torch.mm(x, self.kernel))


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1, self.gc2, self.dropout = GraphConv(24, 8), GraphConv(8, 3), nn.Dropout(0.5)

    def forward(self, x, adj):
        return F.log_softmax(self.gc2(self.dropout(F.relu(self.gc1(x, adj))), adj), dim=1)


class GAT(nn.Module):
    def __init__(self, heads=2, hidden=6):
        super().__init__()
        self.W = nn.Parameter(torch.empty(size=(24, heads * hidden)))
        self.a = nn.Parameter(torch.empty(size=(heads, 2 * hidden, 1)))
        self.out, self.heads, self.hidden = nn.Linear(hidden, 3), heads, hidden
        nn.init.xavier_normal_(self.W)
        nn.init.xavier_normal_(self.a)

    def forward(self, x, adj):
        h = F.dropout(torch.mm(x, self.W), 0.4, training=self.training)
        h = h.view(len(h), self.heads, self.hidden).permute(1, 0, 2)
        e = torch.matmul(h, self.a[:, : self.hidden]) + torch.matmul(h, self.a[:, self.hidden :]).mT
        e = torch.where(adj > 0, F.leaky_relu(e, 0.2), -9e16 * torch.ones_like(e))
        return F.log_softmax(self.out(F.elu(torch.matmul(F.softmax(e, dim=-1), h).mean(dim=0))), dim=1)


permuted = torch.randperm(N)
test, train = permuted[:20], permuted[20:]
for net, inputs in ((GCN(), (features.to_sparse(), normal)), (GAT(), (features, adj))):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=5e-4)
    for epoch in range(20):
        net.train()
        optimizer.zero_grad()
        loss = F.nll_loss(net(*inputs)[train], target[train])
        loss.backward()
        optimizer.step()
        if epoch % 5 == 0:
            print(f"Epoch: {epoch:04d} loss: {loss:.4f}")
    net.eval()
    with torch.no_grad():
        output = net(*inputs)[test]
        right = (output.argmax(dim=1) == target[test]).float().sum() / len(test)
    print(f"Test: loss {F.nll_loss(output, target[test]).item():.4f} accuracy {right.item():.4f}")
