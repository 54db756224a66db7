#include "declare/input.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "declare/kind.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::printable;
using runtime::text;

std::string number(double x) {
  if (const auto whole = static_cast<std::int64_t>(std::clamp(x, -1e6, 1e6)); static_cast<double>(whole) == x)
    return text(whole);
  for (int digits = 1; digits < 17; ++digits) {
    std::ostringstream out;
    out.precision(digits);
    out << x;
    if (std::strtod(out.str().c_str(), nullptr) == x) return out.str();  // rounded up it may be infinite
  }
  return text(x);
}

std::string channels(const std::array<double, 3>& x) {
  if (x[0] == x[1] && x[1] == x[2]) return number(x[0]);
  return text("{", number(x[0]), ", ", number(x[1]), ", ", number(x[2]), "}");
}

Input input_of(const Checkpoint& checkpoint, const Config& config, std::vector<std::string>& assumptions) {
  const auto is = [&](const char* part) { return checkpoint.library().find(part) != std::string::npos; };
  // OpenAI's pictures, ImageNet's, or neither.
  const Input usual =
      is("CLIP") || is("BLIP") ? Input{{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}, 1}
      : is("DPT")              ? Input{half, half, 1, false, runtime::Fit::squash}
      : is("Segment Anything") || is("SAM") ? Input{imagenet_mean, imagenet_deviation, 1, true, runtime::Fit::pad}
      : is("torchvision") || is("DINO")     ? Input{imagenet_mean, imagenet_deviation, 0.875}
      : kind_of(checkpoint) != Kind::vit    ? input_of(kind_of(checkpoint))
                                            : Input{half, half, checkpoint.keys.are_timms() ? 0.9 : 1};
  std::string unsaid;
  const auto otherwise = [&](bool says, const std::string& value) {
    if (!says) unsaid += (unsaid.empty() ? "" : ", ") + value;
  };
  otherwise(config.mean.has_value(), "mean " + channels(usual.mean));
  otherwise(config.deviation.has_value(), "std " + channels(usual.deviation));
  otherwise(config.crop.has_value(), "crop_pct " + number(usual.crop));
  otherwise(!config.interpolation.empty(), usual.bilinear ? "interpolation bilinear" : "interpolation bicubic");
  otherwise(!config.crop_mode.empty(), usual.fit == runtime::Fit::pad      ? "crop_mode pad"
                                       : usual.fit == runtime::Fit::squash ? "crop_mode squash"
                                                                           : "crop_mode center");
  if (!unsaid.empty()) assumptions.push_back("no configuration says how pictures are prepared: " + unsaid);
  const std::string &scaled = config.interpolation, &cropped = config.crop_mode;
  if (!scaled.empty() && scaled != "bicubic" && scaled != "bilinear")
    fail(config.where, ": interpolation ", printable(scaled), " is none of bicubic and bilinear");
  if (!cropped.empty() && cropped != "center" && cropped != "squash" && cropped != "pad")
    fail(config.where, ": crop_mode ", printable(cropped), " is none of center, squash and pad");
  return {config.mean.value_or(usual.mean), config.deviation.value_or(usual.deviation),
          config.crop.value_or(usual.crop), scaled.empty() ? usual.bilinear : scaled == "bilinear",
          cropped == "squash" ? runtime::Fit::squash
          : cropped == "pad"  ? runtime::Fit::pad
          : cropped.empty()   ? usual.fit
                              : runtime::Fit::cut};
}

}  // namespace tessera::declare
