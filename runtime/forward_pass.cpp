#include "runtime/forward_pass.hpp"

#include <algorithm>
#include <utility>

#include "runtime/error.hpp"

namespace tessera::runtime {

namespace {

constexpr std::int64_t batch_images = 32;  // images

}  // namespace

PackedPass::PackedPass(const ForwardPass& pass, Arena parameters)
    : pass_(pass),
      parameters_(std::move(parameters)),
      packed_(Arena::of_floats(pass.packed_floats, pass.alignment)),
      scratch_(pass.scratch_bytes(batch_images), pass.alignment) {
  check(pass.pack(parameters_.floats(), packed_.floats()));
}

std::vector<float> PackedPass::operator()(std::span<const float> inputs, std::int64_t floats,
                                          const std::function<void(std::int64_t images)>& done) const {
  const std::int64_t count = static_cast<std::int64_t>(inputs.size()) / floats;
  std::vector<float> outputs(static_cast<std::size_t>(size_product({count, pass_.output_floats})));
  for (std::int64_t i = 0; i < count; i += batch_images) {
    const std::int64_t batch = std::min(batch_images, count - i);
    check(pass_.forward(parameters_.floats(), packed_.floats(), inputs.data() + i * floats, batch,
                        outputs.data() + i * pass_.output_floats, scratch_.data()));
    if (done) done(batch);
  }
  return outputs;
}

void PackedPass::check(int code) const {
  if (code) fail(pass_.error(code));
}

}  // namespace tessera::runtime
