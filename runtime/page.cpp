#include "runtime/page.hpp"

#include "runtime/error.hpp"
#include "runtime/kernel_times.hpp"
#include "runtime/numbers.hpp"

namespace tessera::runtime {
namespace {

std::span<const char* const> linked;
std::span<const PageKernel> linked_kernels;

void demand_page(const Model& model) {
  if (linked.empty())
    fail(model.name, " was built without its page: the generator writes it where it is asked to (--page), as ",
         "tessera_add_model does");
}

/// What stands in the place of a kernel's mark.
std::string time_of(const KernelTimes& times, const std::string& mark) {
  for (const KernelTimes::Program& program : times.programs)
    for (const KernelTimes::Row& row : program.rows)
      if (mark == program.name + " " + row.name)
        return text(" &middot; <b>", row.shown_share(), "</b> of the time, ", fixed(row.milliseconds, 3), " ms");
  return "";
}

}  // namespace

Page::Page(std::span<const char* const> texts, std::span<const PageKernel> kernels) {
  linked = texts;
  linked_kernels = kernels;
}

std::span<const PageKernel> kernels_of(const Model& model) {
  demand_page(model);
  return linked_kernels;
}

std::string page_of(const Model& model, const std::filesystem::path& times) {
  demand_page(model);
  std::string page;
  for (const char* const part : linked) page += part;
  if (times.empty()) return page;
  const KernelTimes measured = read_kernel_times(times, model);
  constexpr std::string_view begin = "<!--time ", end = "-->";
  std::string shown;
  std::size_t done = 0;
  for (std::size_t at; (at = page.find(begin, done)) != std::string::npos;) {
    const std::size_t mark = at + begin.size(), close = page.find(end, mark);
    shown += page.substr(done, at - done) + time_of(measured, page.substr(mark, close - mark));
    done = close + end.size();
  }
  shown += page.substr(done);
  constexpr std::string_view facts = "<div class=\"facts\">\n";
  const std::size_t at = shown.find(facts);
  std::string more;
  for (const KernelTimes::Program& program : measured.programs)
    more += text("<div><b>", fixed(program.milliseconds, 3),
                 " ms</b>measured: ", program.name == "forward" ? "forward" : "training step", ", ",
                 grouped(measured.batch), measured.batch == 1 ? " image" : " images", " (", measured.isa, ")</div>\n");
  return at == std::string::npos ? shown : shown.insert(at + facts.size(), more);
}

}  // namespace tessera::runtime
