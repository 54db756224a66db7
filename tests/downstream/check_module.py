"""The emitted Python module my_vit: one picture and many agree, threads do, and what is wrong is an exception with a sentence.
Usage: check_module.py WEIGHTS"""
import sys
import threading

import numpy

import my_vit


def refused(kind, part, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        assert part in str(error), f"{error}: lacks {part}"
        return
    raise AssertionError(f"{function.__name__}{arguments} was expected to raise {kind.__name__}")


def main(weights):
    random = numpy.random.default_rng(1)
    pictures = random.integers(0, 256, (37, 30, 17, 3), numpy.uint8)  # more than are worked on at once, of another size
    model = my_vit.Model(weights)
    labels, probabilities = model.classify(pictures, top=numpy.int64(my_vit.CLASSES))
    assert labels.shape == probabilities.shape == (37, 10) and labels.dtype == numpy.int32
    assert (numpy.sort(labels) == numpy.arange(10)).all() and numpy.allclose(probabilities.sum(1), 1, atol=1e-5)
    assert (numpy.diff(probabilities) <= 0).all()
    embeddings = model.embed(pictures)
    assert embeddings.shape == (37, 16) and len(numpy.unique(embeddings, axis=0)) == 37
    wide = numpy.zeros((30, 40, 3), numpy.uint8)
    wide[:, :17] = pictures[5]
    for one in (pictures[5], wide[:, :17]):  # the second one's rows do not touch
        label, probability = model.classify(one, top=10)
        assert (label == labels[5]).all() and (probability == probabilities[5]).all()
        assert (model.embed(one) == embeddings[5]).all()

    def again():
        for _ in range(20):
            assert (model.classify(pictures, top=10)[1] == probabilities).all()
            done.append(1)

    done = []
    threads = [threading.Thread(target=again) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 8 * 20

    refused(my_vit.Error, "/nowhere", my_vit.Model, "/nowhere")
    refused(my_vit.Error, "classes apart", model.classify, pictures, top=11)
    refused(my_vit.Error, "classes apart", model.classify, pictures, top=-1)
    refused(my_vit.Error, "no pictures", model.classify, pictures[:0])
    refused(TypeError, "float64", model.classify, pictures / 255)
    refused(ValueError, "(30, 17)", model.classify, pictures[0, :, :, 0])
    refused(my_vit.Error, "each side", model.embed, pictures[:1, :0])
    model.close()
    refused(my_vit.Error, "closed", model.classify, pictures)
    print("the module refuses what it must and gives one answer to one picture, alone, in a batch and in 8 threads")


if __name__ == "__main__":
    main(sys.argv[1])
