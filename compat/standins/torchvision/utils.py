"""make_grid and save_image, as torchvision's."""

import struct
import zlib

import numpy as np
import torch


def make_grid(tensor, nrow=8, padding=2, normalize=False, value_range=None, pad_value=0.0):
    """One image (3, H, W) of a batch (N, C, H, W), nrow to a row."""
    tensor = torch.stack(tensor) if isinstance(tensor, (list, tuple)) else tensor
    while tensor.dim() < 4:
        tensor = tensor.unsqueeze(0)
    tensor = torch.cat([tensor] * 3, 1) if tensor.size(1) == 1 else tensor.clone()
    if normalize:
        low, high = value_range or (float(tensor.min()), float(tensor.max()))
        tensor.clamp_(min=low, max=high).sub_(low).div_(max(high - low, 1e-5))
    count = tensor.size(0)
    columns = min(nrow, count)
    rows = -(-count // columns)
    height, width = tensor.size(2) + padding, tensor.size(3) + padding
    grid = tensor.new_full((tensor.size(1), height * rows + padding, width * columns + padding), pad_value)
    for k in range(count):
        top, left = k // columns * height + padding, k % columns * width + padding
        grid[:, top : top + height - padding, left : left + width - padding].copy_(tensor[k])
    return grid


def save_image(tensor, fp, format=None, **options):
    """Write a batch as one PNG file."""
    grid = make_grid(tensor, **options)
    pixels = grid.mul(255).add_(0.5).clamp_(0, 255).permute(1, 2, 0).to("cpu", torch.uint8).numpy()
    height, width, _ = pixels.shape
    lines = np.hstack([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)])  # each line with filter 0

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines.tobytes())) + chunk(b"IEND", b"")
    if hasattr(fp, "write"):
        fp.write(data)
        return
    with open(fp, "wb") as file:
        file.write(data)
