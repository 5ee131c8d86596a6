"""A conditional GAN on resized images: label embeddings, legacy tensor types, dropout before a leaky ReLU."""

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable
from torchvision import datasets, transforms

np.random.seed(0)
torch.manual_seed(0)
FloatTensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
LongTensor = torch.cuda.LongTensor if torch.cuda.is_available() else torch.LongTensor
size, latent = 32, 16
resized = transforms.Compose([transforms.Resize(size), transforms.ToTensor(), transforms.Normalize([0.5], [0.5])])
images = torch.utils.data.Subset(datasets.MNIST("data", train=True, download=True, transform=resized), range(96))
loader = torch.utils.data.DataLoader(images, batch_size=32, shuffle=True)
print(sum(int(((x + 1) * 127.5).round().sum(dtype=torch.float64)) for x, _ in images))


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label = nn.Embedding(10, 10)
        self.model = nn.Sequential(
            nn.Linear(latent + 10, 32), nn.BatchNorm1d(32, 0.8), nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(32, size * size), nn.Tanh(),
        )  # fmt: skip

    def forward(self, noise, labels):
        return self.model(torch.cat((self.label(labels), noise), -1)).view(noise.size(0), 1, size, size)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label = nn.Embedding(10, 10)
        self.model = nn.Sequential(
            nn.Linear(10 + size * size, 32), nn.LeakyReLU(0.2, inplace=True),
            nn.Linear(32, 32), nn.Dropout(0.4), nn.LeakyReLU(0.2, inplace=True), nn.Linear(32, 1),
        )  # fmt: skip

    def forward(self, img, labels):
        return self.model(torch.cat((img.view(img.size(0), -1), self.label(labels)), -1))


generator, discriminator, criterion = Generator(), Discriminator(), nn.MSELoss()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999), eps=1e-6)
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999), eps=1e-6)
for i, (imgs, labels) in enumerate(loader):
    n = imgs.shape[0]
    valid = Variable(FloatTensor(n, 1).fill_(1.0), requires_grad=False)
    fake = Variable(FloatTensor(n, 1).fill_(0.0), requires_grad=False)
    real, labels = Variable(imgs.type(FloatTensor)), Variable(labels.type(LongTensor))
    optimizer_G.zero_grad()
    z = Variable(FloatTensor(np.random.normal(0, 1, (n, latent))))
    drawn = Variable(LongTensor(np.random.randint(0, 10, n)))
    made = generator(z, drawn)
    g_loss = criterion(discriminator(made, drawn), valid)
    g_loss.backward()
    optimizer_G.step()
    optimizer_D.zero_grad()
    d_loss = (criterion(discriminator(real, labels), valid) + criterion(discriminator(made.detach(), drawn), fake)) / 2
    d_loss.backward()
    optimizer_D.step()
    print("[Batch %d/%d] [D loss: %f] [G loss: %f]" % (i, len(loader), d_loss.item(), g_loss.item()))
