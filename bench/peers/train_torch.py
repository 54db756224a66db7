"""A declared model trained in PyTorch as its recipe in models/ says.

Usage: train_torch.py MODEL FOLDER [SEED ...] [--epochs N]      (needs torch and numpy)

MODEL   vit_mnist: MnistVit on the four IDX files of FOLDER, plain or .gz; batches of 128, Adam at 0.005, pixels / 255
        vit_cifar: CifarVit on cifar10_train_*.bin and cifar10_test_*.bin of FOLDER, plain or .gz; batches of 128, Adam
        at 0.001, (pixels / 255 - 0.5) / 0.5, dropout 0.2
The models are those of tests/golden/reference_models.py. For each seed (1 when none is given) five epochs. Prints after
every epoch the mean test loss, the test accuracy and the seconds that training took, and at the end the largest memory
the process had. Threads: OMP_NUM_THREADS.
"""
import argparse, gzip, os, pathlib, resource, sys, time
import numpy as np, torch, torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/golden"))
import reference_models as R

BATCH = 128


def content(path):
    with (gzip.open(path) if path.suffix == ".gz" else open(path, "rb")) as f:
        return f.read()


def mnist(folder, part):
    def idx(what, header):
        return np.frombuffer(content(next(folder.glob(f"{part}-{what}-ubyte*"))), np.uint8, offset=header)

    return idx("images-idx3", 16).reshape(-1, 1, 28, 28) / np.float32(255), idx("labels-idx1", 8)


def cifar(folder, part):
    rows = np.concatenate([np.frombuffer(content(path), np.uint8).reshape(-1, 3073)
                           for path in sorted(folder.glob(f"cifar10_{part}_*.bin*"))])
    return (rows[:, 1:].reshape(-1, 3, 32, 32) / np.float32(255) - np.float32(0.5)) / np.float32(0.5), rows[:, 0]


# name: model, learning rate, data, names of its training and test part
MODELS = {
    "vit_mnist": (R.MnistVit, 0.005, mnist, ("train", "t10k")),
    "vit_cifar": (R.CifarVit, 0.001, cifar, ("train", "test")),
}


def evaluate(model, images, labels):
    model.eval()
    loss = right = 0.0
    with torch.no_grad():
        for x, y in zip(images.split(1000), labels.split(1000)):
            z = model(x)
            loss += F.cross_entropy(z, y, reduction="sum").item()
            right += (z.argmax(1) == y).sum().item()
    return loss / len(labels), right / len(labels)


def train(make, rate, seed, epochs, images, labels, test_images, test_labels):
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for epoch in range(epochs):
        model.train()
        start = time.perf_counter()
        for rows in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
        seconds = time.perf_counter() - start
        loss, accuracy = evaluate(model, test_images, test_labels)
        print(f"seed {seed} epoch {epoch + 1}: test loss {loss:.4f}, accuracy {accuracy:.4f}, {seconds:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("seed", type=int, nargs="*")
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    make, rate, load, parts = MODELS[args.model]
    print(f"torch {torch.__version__}, {torch.get_num_threads()} thread(s)", flush=True)
    data = []
    for part in parts:
        images, labels = load(args.folder, part)
        data += [torch.from_numpy(np.ascontiguousarray(images)), torch.from_numpy(labels.astype(np.int64))]
    for seed in args.seed or [1]:
        train(make, rate, seed, args.epochs, *data)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
