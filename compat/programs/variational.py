"""A variational autoencoder: reparametrised samples, summed binary cross-entropy, its KL term, samples from the prior."""

import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

torch.manual_seed(1)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 4)
        self.fc22 = nn.Linear(40, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 40), nn.ReLU(inplace=True), nn.Linear(40, 64), nn.Sigmoid())

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        return self.decoder(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x.view(-1, 64), reduction="sum")
    return bce - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())


grid = torch.linspace(-1, 1, 8)
centre = torch.rand(256, 2, 1, 1) - 0.5
images = torch.exp(-4 * ((grid[:, None] - centre[:, 0]) ** 2 + (grid[None, :] - centre[:, 1]) ** 2)).unsqueeze(1)
print(images.shape, images.min().item(), images.max().item())
loader = torch.utils.data.DataLoader(images, batch_size=64, shuffle=True, num_workers=0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(f"Using device: {device}")
model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(1, 4):
    model.train()
    train_loss = 0
    for batch, data in enumerate(loader):
        data = data.to(device)
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = loss_function(recon, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch % 2 == 0:
            print("Train Epoch: {} [{}/{}]\tLoss: {:.6f}".format(epoch, batch * len(data), 256, loss.item() / len(data)))
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(loader.dataset)))
model.eval()
with torch.no_grad():
    sample = model.decoder(torch.randn(3, 4).to(device)).cpu()
    print(sample.view(3, 1, 8, 8).mean(dim=(1, 2, 3)))
    print(sample[0, :8])
q = torch.distributions.Normal(mu, torch.exp(0.5 * logvar))
print("KL", torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum(1).mean())
