// The page of a model that is served.
#pragma once

#include <string>
#include <vector>

#include "runtime/model.hpp"

namespace tessera::runtime::serve {

/// HTML that needs no other file: what the model is, and a place to drop a picture, which is sent to POST /classify.
/// `classes` are the names, or none.
std::string page_of_model(const Model& model, const std::vector<std::string>& classes);

}  // namespace tessera::runtime::serve
