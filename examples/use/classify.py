import numpy

import my_vit

pictures = numpy.full((10, 20, 12, 3), 48, numpy.uint8)
for label in range(10):
    pictures[label, 2 * label:2 * label + 2, 3:9] = 208  # a bar of each class

with my_vit.Model() as model:  # the wheel's own weights; Model("other.safetensors") opens others
    labels, probabilities = model.classify(pictures, top=3)
    for label in range(10):
        print(model.labels[labels[label, 0]], f"{probabilities[label, 0]:.3f}")
    print("embeddings", model.embed(pictures).shape)
