#include "runtime/page.hpp"

#include "runtime/error.hpp"

namespace tessera::runtime {
namespace {

std::span<const char* const> linked;

}  // namespace

Page::Page(std::span<const char* const> texts) { linked = texts; }

std::string page_of(const Model& model) {
  if (linked.empty())
    fail(model.name, " was built without its page: the generator writes it where it is asked to (--page), as ",
         "tessera_add_model does");
  std::string page;
  for (const char* const part : linked) page += part;
  return page;
}

}  // namespace tessera::runtime
