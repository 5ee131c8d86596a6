"""Data sets under torchvision's names, generated: nothing is read or downloaded."""

import os

import numpy as np
import torch
from torch.utils.data import Dataset

from . import transforms as T

IMAGES = int(os.environ.get("STANDIN_IMAGES", "2048"))  # images of a training set; a test set has a quarter


class Generated(Dataset):
    """Images of 10 classes: each class is a smooth pattern of its own, each image that pattern, shifted, with noise."""

    shape: tuple[int, ...] = (28, 28)

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        self.root, self.train, self.transform, self.target_transform = root, train, transform, target_transform
        rng = np.random.default_rng(1 if train else 2)
        count = IMAGES if train else max(IMAGES // 4, 1)
        labels = rng.integers(0, 10, count)
        height, width = self.shape[:2]
        row, column = np.mgrid[0:height, 0:width] * (2 * np.pi / height)
        angle, shift = labels * (np.pi / 10), rng.uniform(-0.5, 0.5, (2, count))
        speed = 1 + labels % 3
        wave = np.cos(angle) * (row[..., None] + shift[0]) + np.sin(angle) * (column[..., None] + shift[1])
        images = np.clip(np.sin(speed * wave), 0, 1).transpose(2, 0, 1)  # dark where the wave is below 0, as in MNIST
        images = images.reshape(count, height, width, *(1 for _ in self.shape[2:]))
        images = images * 220 + rng.integers(0, 36, (count, *self.shape)) * (images > 0)
        self.data, self.targets = torch.from_numpy(images.astype(np.uint8)), torch.from_numpy(labels)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image, target = self.data[index].numpy(), int(self.targets[index])
        image = self.transform(image) if self.transform else image
        return image, self.target_transform(target) if self.target_transform else target


class MNIST(Generated):
    """28 x 28 grey images."""


class FashionMNIST(MNIST):
    """28 x 28 grey images."""


class CIFAR10(Generated):
    """32 x 32 images of three channels."""

    shape = (32, 32, 3)


class FakeData(Dataset):
    """Noise of a given size; item i is drawn with seed i + random_offset and leaves the random state as it was."""

    def __init__(
        self,
        size=1000,
        image_size=(3, 224, 224),
        num_classes=10,
        transform=None,
        target_transform=None,
        random_offset=0,
    ):
        self.size, self.image_size, self.num_classes = size, image_size, num_classes
        self.transform, self.target_transform, self.random_offset = transform, target_transform, random_offset

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if index >= self.size:
            raise IndexError(f"{type(self).__name__} index out of range")
        state = torch.get_rng_state()
        torch.manual_seed(index + self.random_offset)
        image = torch.rand(*self.image_size)
        target = int(torch.randint(0, self.num_classes, size=(1,), dtype=torch.long)[0])
        torch.set_rng_state(state)
        image = T.to_image(image)
        image = self.transform(image) if self.transform else image
        return image, self.target_transform(target) if self.target_transform else target
