"""The main job in PyTorch: MnistVit (tests/golden/reference_models.py) trained as models/vit_mnist.hpp declares it.

Usage: mnist_torch.py MNIST_FOLDER [SEED ...]      (needs torch and numpy)

MNIST_FOLDER holds the four IDX files, plain or .gz. For each seed (1 when none is given) five epochs of batches of 128,
Adam at 0.005, pixels / 255, cross entropy of the model's probabilities. Prints after every epoch the mean test loss, the
test accuracy and the seconds that training took, and at the end the largest memory the process had. Threads: OMP_NUM_THREADS.
"""
import gzip, os, resource, sys, time
import numpy as np, torch, torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/golden"))
import reference_models as R

EPOCHS, BATCH, LEARNING_RATE = 5, 128, 0.005


def idx(folder, name, header):
    """The bytes after an IDX header of `header` bytes."""
    path = os.path.join(folder, name)
    with (open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz")) as f:
        return np.frombuffer(f.read(), np.uint8, offset=header)


def load(folder, part):
    images = idx(folder, f"{part}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    labels = idx(folder, f"{part}-labels-idx1-ubyte", 8)
    return torch.from_numpy(images.astype(np.float32) / 255), torch.from_numpy(labels.astype(np.int64))


def evaluate(model, images, labels):
    model.eval()
    loss = right = 0.0
    with torch.no_grad():
        for x, y in zip(images.split(1000), labels.split(1000)):
            z = model(x)
            loss += F.cross_entropy(z, y, reduction="sum").item()
            right += (z.argmax(1) == y).sum().item()
    return loss / len(labels), right / len(labels)


def train(seed, images, labels, test_images, test_labels):
    torch.manual_seed(seed)
    model = R.MnistVit()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for epoch in range(EPOCHS):
        model.train()
        start = time.perf_counter()
        for rows in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
        seconds = time.perf_counter() - start
        loss, accuracy = evaluate(model, test_images, test_labels)
        print(f"seed {seed} epoch {epoch + 1}: test loss {loss:.4f}, accuracy {accuracy:.4f}, {seconds:.1f} s", flush=True)


def main(folder, seeds):
    print(f"torch {torch.__version__}, {torch.get_num_threads()} thread(s)", flush=True)
    data = load(folder, "train") + load(folder, "t10k")
    for seed in seeds:
        train(seed, *data)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main(sys.argv[1], [int(s) for s in sys.argv[2:]] or [1])
