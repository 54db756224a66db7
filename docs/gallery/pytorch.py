"""The mistakes of docs/gallery.md in PyTorch: what it says, and when. Usage: pytorch.py      (needs torch)"""
import torch

B, C, P, GH, H, K = 8, 3, 16, 14, 3, 64
N, D, TILES = GH * GH, H * K, 63


def positions_without_the_class_token():
    tokens, positions = torch.zeros(B, N + 1, D), torch.zeros(N, D)
    return tokens + positions


def linear_fed_unmerged_heads():
    proj, heads = torch.nn.Linear(D, D), torch.zeros(B, H, N + 1, K)
    return proj(heads)


def heads_that_do_not_divide_the_width():
    x = torch.zeros(B, N + 1, D)
    return x.reshape(B, N + 1, 5, D // 5)


def image_reshaped_straight_to_patches():
    images = torch.zeros(B, C, GH * P, GH * P)
    return images.reshape(B, N, C * P * P)


def scores_contracted_over_the_wrong_axis():
    scores, v = torch.zeros(B, TILES + 1, TILES + 1), torch.zeros(B, TILES + 1, K)
    return torch.einsum("bij,bkj->bik", scores, v)


print("PyTorch", torch.__version__)
for mistake in (positions_without_the_class_token, linear_fed_unmerged_heads, heads_that_do_not_divide_the_width,
                image_reshaped_straight_to_patches, scores_contracted_over_the_wrong_axis):
    try:
        said = f"nothing: it gives {list(mistake().shape)}"
    except RuntimeError as error:
        said = f"RuntimeError: {error}"
    print(f"{mistake.__name__}\n  {said}")
