"""Transforms under torchvision's names, on uint8 arrays of shape (H, W) or (H, W, C) and tensors of shape (C, H, W)."""

import numpy as np
import torch
import torch.nn.functional as F


def to_image(tensor):
    """A uint8 array (H, W, C), or (H, W) of one channel, of a float tensor (C, H, W) with values in [0, 1]."""
    image = tensor.mul(255).byte().permute(1, 2, 0).numpy()
    return image[..., 0] if image.shape[2] == 1 else image


def to_tensor(image):
    """A float tensor (C, H, W) with values in [0, 1] of a uint8 array or PIL image."""
    array = np.array(image)
    array = array[..., None] if array.ndim == 2 else array
    return torch.from_numpy(array).permute(2, 0, 1).contiguous().to(torch.get_default_dtype()).div(255)


class Compose:
    """The transforms one after another."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class Lambda:
    """Any function."""

    def __init__(self, lambd):
        self.lambd = lambd

    def __call__(self, image):
        return self.lambd(image)


class ToTensor:
    """``to_tensor``."""

    def __call__(self, image):
        return to_tensor(image)


class ToPILImage:
    """``to_image``: an array, where torchvision gives PIL's image."""

    def __call__(self, tensor):
        return to_image(tensor)


class Normalize:
    """(tensor - mean) / std by channel."""

    def __init__(self, mean, std, inplace=False):
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, tensor):
        tensor = tensor if self.inplace else tensor.clone()
        mean = torch.as_tensor(self.mean, dtype=tensor.dtype).view(-1, 1, 1)
        std = torch.as_tensor(self.std, dtype=tensor.dtype).view(-1, 1, 1)
        return tensor.sub_(mean).div_(std)


class Resize:
    """Bilinear, to (height, width), or the shorter side to an int."""

    def __init__(self, size, interpolation=None):
        self.size = size

    def __call__(self, image):
        tensor = image if isinstance(image, torch.Tensor) else to_tensor(image).double().mul(255).round()
        height, width = tensor.shape[-2:]
        short = min(height, width)
        size = (height * self.size // short, width * self.size // short) if isinstance(self.size, int) else self.size
        if tuple(size) != (height, width):
            tensor = F.interpolate(tensor[None], size=tuple(size), mode="bilinear", align_corners=False)[0]
        if isinstance(image, torch.Tensor):
            return tensor
        return to_image(tensor.round().div(255))  # to the nearest, so that the last bit of a sum does not show


class Pad:
    """Zeros around a uint8 array."""

    def __init__(self, padding):
        self.padding = padding

    def __call__(self, image):
        return np.pad(image, [(self.padding, self.padding)] * 2 + [(0, 0)] * (image.ndim - 2))


class CenterCrop:
    """The middle of an image."""

    def __init__(self, size):
        self.size = (size, size) if isinstance(size, int) else size

    def __call__(self, image):
        channels_first = isinstance(image, torch.Tensor)
        shape = image.shape[-2:] if channels_first else image.shape[:2]
        top, left = ((n - m) // 2 for n, m in zip(shape, self.size, strict=True))
        cut = slice(top, top + self.size[0]), slice(left, left + self.size[1])
        return image[(..., *cut) if channels_first else cut]


class RandomCrop:
    """A place of the given size, of an image with `padding` zeros around it."""

    def __init__(self, size, padding=0):
        self.size = (size, size) if isinstance(size, int) else size
        self.padding = padding

    def __call__(self, image):
        around = [(self.padding, self.padding)] * 2 + [(0, 0)] * (image.ndim - 2)
        image = np.pad(image, around)
        top, left = (int(torch.randint(0, n - m + 1, (1,))) for n, m in zip(image.shape[:2], self.size, strict=True))
        return image[top : top + self.size[0], left : left + self.size[1]]


class RandomHorizontalFlip:
    """Left and right exchanged, with probability p."""

    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, image):
        return image[:, ::-1] if torch.rand(1) < self.p else image
