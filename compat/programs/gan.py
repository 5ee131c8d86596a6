"""A small DCGAN on noise images: transposed convolutions, batch norm, two optimisers, label tensors that are refilled."""

import torch
import torch.nn as nn
import torch.nn.parallel
import torch.optim as optim

torch.manual_seed(7)
torch.backends.cudnn.benchmark = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def weights_init(m):
    name = m.__class__.__name__
    if name.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif name.find("BatchNorm") != -1:
        torch.nn.init.normal_(m.weight, 1.0, 0.02)
        torch.nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self, ngpu):
        super().__init__()
        self.ngpu = ngpu
        self.main = nn.Sequential(
            nn.ConvTranspose2d(10, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
            nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
            nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip

    def forward(self, input):
        if input.is_cuda and self.ngpu > 1:
            return nn.parallel.data_parallel(self.main, input, range(self.ngpu))
        return self.main(input)


netG = Generator(1).to(device)
netG.apply(weights_init)
netD = nn.Sequential(
    nn.Conv2d(3, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(8, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(16, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
).to(device).apply(weights_init)  # fmt: skip
print(netG, netD, sep="\n")
criterion = nn.BCELoss()
optimizerD = optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
images = torch.utils.data.TensorDataset(torch.rand(64, 3, 16, 16))
loader = torch.utils.data.DataLoader(images, batch_size=16, shuffle=True, num_workers=0)
for i, data in enumerate(loader, 0):
    netD.zero_grad()
    real = data[0].to(device)
    label = torch.full((real.size(0),), 1, dtype=real.dtype, device=device)
    output = netD(real).view(-1, 1).squeeze(1)
    errD_real = criterion(output, label)
    errD_real.backward()
    D_x = output.mean().item()
    fake = netG(torch.randn(real.size(0), 10, 1, 1, device=device))
    label.fill_(0)
    errD_fake = criterion(netD(fake.detach()).view(-1), label)
    errD_fake.backward()
    errD = errD_real + errD_fake
    optimizerD.step()
    netG.zero_grad()
    label.fill_(1)
    errG = criterion(netD(fake).view(-1), label)
    errG.backward()
    optimizerG.step()
    print("[%d/%d] Loss_D: %.4f Loss_G: %.4f D(x): %.4f" % (i, len(loader), errD.item(), errG.item(), D_x))
torch.save(netG.state_dict(), "netG.pth")
netG.load_state_dict(torch.load("netG.pth"))
print(netG.eval()(torch.ones(1, 10, 1, 1)).mean().item())
