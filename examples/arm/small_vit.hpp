#include "models/vit.hpp"

using SmallVit = tessera::models::Vit<{
    .image = 16, .patch = 4, .channels = 1, .width = 16, .heads = 2, .depth = 2, .mlp = 2, .classes = 3}>;
