"""Networks to measure and to export, as sequences of modules, which is what segments of recomputation are cut from.

Each function of NETWORKS takes a batch size and returns `(model, input, target)` on the CPU, for a cross entropy; the
models are those of torchvision and of GPT-2, layer by layer, with weights of their own. No module of a sequence changes
its input in place: PyTorch 2 refuses to run a segment again that begins so.
"""

from typing import Callable, Dict, List, Tuple

import torch
from torch import nn

Made = Tuple[nn.Sequential, torch.Tensor, torch.Tensor]


class Residual(nn.Module):
    """A block of a ResNet: its layers, added to its input or to a projection of it."""

    def __init__(self, layers: List[nn.Module], before: int, after: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self.downsample = nn.Identity()
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.layers(x)
        out += self.downsample(x)
        return self.relu(out)


def convolution(before: int, after: int, kernel: int, stride: int = 1) -> List[nn.Module]:
    return [nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(after)]


def activated(*layers: nn.Module) -> nn.Module:
    """As one module, so that no segment begins at the activation, which works in place."""
    return nn.Sequential(*layers, nn.ReLU(inplace=True))


def basic_block(before: int, channels: int, stride: int) -> nn.Module:
    layers = [*convolution(before, channels, 3, stride), nn.ReLU(inplace=True), *convolution(channels, channels, 3)]
    return Residual(layers, before, channels, stride)


def bottleneck(before: int, channels: int, stride: int) -> nn.Module:
    layers = [*convolution(before, channels, 1), nn.ReLU(inplace=True), *convolution(channels, channels, 3, stride),
              nn.ReLU(inplace=True), *convolution(channels, 4 * channels, 1)]
    return Residual(layers, before, 4 * channels, stride)


def resnet(block: Callable[[int, int, int], nn.Module], depths: Tuple[int, ...], widening: int) -> nn.Sequential:
    layers = [activated(*convolution(3, 64, 7, 2)), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for stage, depth in enumerate(depths):
        channels = 64 << stage
        for index in range(depth):
            layers.append(block(before, channels, 2 if stage and not index else 1))
            before = channels * widening
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))


def vgg(widths: Tuple[Tuple[int, int], ...]) -> nn.Sequential:
    layers: List[nn.Module] = []
    before = 3
    for channels, depth in widths:
        for _ in range(depth):
            layers.append(activated(nn.Conv2d(before, channels, 3, padding=1)))
            before = channels
        layers.append(nn.MaxPool2d(2))
    head = [activated(nn.Linear(512 * 7 * 7, 4096)), nn.Dropout(), activated(nn.Linear(4096, 4096)), nn.Dropout(),
            nn.Linear(4096, 1000)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), *head)


class Embeddings(nn.Module):
    """Of tokens and of their positions."""

    def __init__(self, vocabulary: int, length: int, features: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, features)
        self.positions = nn.Embedding(length, features)
        self.drop = nn.Dropout(0.1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.drop(self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device)))


class Attention(nn.Module):
    """Causal, written out: product, scale, mask, softmax, dropout, product."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(features, 3 * features)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, features = x.shape
        query, key, value = (part.reshape(batch, length, self.heads, -1).transpose(1, 2)
                             for part in self.qkv(x).chunk(3, dim=-1))
        scores = query @ key.transpose(-2, -1) / (features // self.heads) ** 0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = self.drop(scores.masked_fill(future, float("-inf")).softmax(-1))
        return self.out((weights @ value).transpose(1, 2).reshape(batch, length, features))


class TransformerBlock(nn.Module):
    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(features)
        self.attention = Attention(features, heads)
        self.drop1 = nn.Dropout(0.1)
        self.norm2 = nn.LayerNorm(features)
        self.mlp = nn.Sequential(nn.Linear(features, 4 * features), nn.GELU(), nn.Linear(4 * features, features),
                                 nn.Dropout(0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.drop1(self.attention(self.norm1(x)))
        return x + self.mlp(self.norm2(x))


def gpt2(batch: int, length: int, vocabulary: int, features: int, heads: int, blocks: int) -> Made:
    embeddings = Embeddings(vocabulary, length, features)
    head = nn.Linear(features, vocabulary, bias=False)
    head.weight = embeddings.tokens.weight
    body = [TransformerBlock(features, heads) for _ in range(blocks)]
    model = nn.Sequential(embeddings, *body, nn.LayerNorm(features), nn.Flatten(0, 1), head)
    return model, torch.randint(vocabulary, (batch, length)), torch.randint(vocabulary, (batch * length,))


def images(model: nn.Sequential, batch: int, size: int, classes: int = 1000) -> Made:
    return model, torch.randn(batch, 3, size, size), torch.randint(classes, (batch,))


def tiny_cnn() -> nn.Sequential:
    return nn.Sequential(activated(*convolution(3, 16, 3)), basic_block(16, 32, 2), basic_block(32, 32, 1), nn.Dropout(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


VGG16 = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))

NETWORKS: Dict[str, Callable[[int], Made]] = {
    "tiny-cnn": lambda batch: images(tiny_cnn(), batch, 32, 10),
    "tiny-gpt2": lambda batch: gpt2(batch, 64, 500, 64, 4, 3),
    "resnet18": lambda batch: images(resnet(basic_block, (2, 2, 2, 2), 1), batch, 224),
    "resnet50": lambda batch: images(resnet(bottleneck, (3, 4, 6, 3), 4), batch, 224),
    "vgg16": lambda batch: images(vgg(VGG16), batch, 224),
    "gpt2-small": lambda batch: gpt2(batch, 1024, 50257, 768, 12, 12),
    "gpt2-medium": lambda batch: gpt2(batch, 1024, 50257, 1024, 16, 24),
}


def make(name: str, batch: int) -> Made:
    torch.manual_seed(1)
    return NETWORKS[name](batch)
