// Vision Transformers of other libraries. Declared as `tessera declare` writes it (tests/declare), with their files
// read as any program reads them, against the libraries' own numbers (tests/golden/dialects).
#include <gtest/gtest.h>

#include "runtime/translation.hpp"
#include "tests/models/declared/depth_anything_v2.hpp"
#include "tests/models/declared/dinov2.hpp"
#include "tests/models/declared/dinov2_registers.hpp"
#include "tests/models/declared/hf_beit.hpp"
#include "tests/models/declared/hf_beit_model.hpp"
#include "tests/models/declared/hf_blip.hpp"
#include "tests/models/declared/hf_clip.hpp"
#include "tests/models/declared/hf_clip_classes.hpp"
#include "tests/models/declared/hf_deit.hpp"
#include "tests/models/declared/hf_depth_anything.hpp"
#include "tests/models/declared/hf_dinov2.hpp"
#include "tests/models/declared/hf_dinov2_classes.hpp"
#include "tests/models/declared/hf_dinov2_registers.hpp"
#include "tests/models/declared/hf_dinov3.hpp"
#include "tests/models/declared/hf_dinov3_gated.hpp"
#include "tests/models/declared/hf_dpt.hpp"
#include "tests/models/declared/hf_ijepa.hpp"
#include "tests/models/declared/hf_mae.hpp"
#include "tests/models/declared/hf_msn.hpp"
#include "tests/models/declared/hf_sam.hpp"
#include "tests/models/declared/hf_siglip.hpp"
#include "tests/models/declared/hf_siglip_classes.hpp"
#include "tests/models/declared/hf_swin.hpp"
#include "tests/models/declared/hf_swin_model.hpp"
#include "tests/models/declared/hf_swin_v2.hpp"
#include "tests/models/declared/hf_vit.hpp"
#include "tests/models/declared/hf_vit_model.hpp"
#include "tests/models/declared/open_clip.hpp"
#include "tests/models/declared/torchvision.hpp"
#include "tests/models/recorded.hpp"
#include "tests/models/timm_golden.hpp"

namespace tessera::test {
namespace {

Arrays arrays_of(const runtime::Safetensors& file) {
  Arrays arrays;
  for (const auto& [key, tensor] : file.tensors) arrays[key] = {tensor.shape, tensor.doubles()};
  return arrays;
}

/// Outputs within 1e-5, and every parameter of the declaration is in the file.
void expect_the_librarys_numbers(const std::string& name, const graph::Graph& forward) {
  const std::filesystem::path folder = std::filesystem::path(paths::golden) / "dialects" / name;
  runtime::Translation read = runtime::in_timms_keys(runtime::read_safetensors(folder / "model.safetensors"));
  Arrays given = arrays_of(read.file), io = arrays_of(runtime::read_safetensors(folder / "io.safetensors"));
  const Array outputs = io.at("outputs");
  given["images"] = io.at("x");
  given["labels"] = {{2}, {0, 1}};
  given["grad_output"] = {outputs.shape, std::vector<double>(outputs.numbers.size())};
  const Arrays results = interpret(forward, 2, given);
  ASSERT_EQ(results.at("outputs").shape, outputs.shape);
  const double apart = distance(results.at("outputs"), outputs, 1e-3);
  EXPECT_LE(apart, 1e-5) << name;
  std::printf("  %s, keys of %s: outputs %.1e\n", name.c_str(), std::string(read.keys.dialect->library).c_str(), apart);
}

#define DIALECT(name, model) \
  TEST(Dialects, name) { expect_the_librarys_numbers(#name, recorded<models::model>()); }

DIALECT(torchvision, Torchvision)
DIALECT(hf_vit, HfVit)
DIALECT(hf_vit_model, HfVitModel)
DIALECT(hf_deit, HfDeit)
DIALECT(hf_depth_anything, HfDepthAnything)
DIALECT(depth_anything_v2, DepthAnythingV2)
DIALECT(hf_dinov2, HfDinov2)
DIALECT(hf_dinov2_registers, HfDinov2Registers)
DIALECT(hf_dinov2_classes, HfDinov2Classes)
DIALECT(hf_blip, HfBlip)
DIALECT(hf_clip, HfClip)
DIALECT(hf_clip_classes, HfClipClasses)
DIALECT(hf_siglip, HfSiglip)
DIALECT(hf_siglip_classes, HfSiglipClasses)
DIALECT(hf_beit, HfBeit)
DIALECT(hf_beit_model, HfBeitModel)
DIALECT(hf_dinov3, HfDinov3)
DIALECT(hf_dinov3_gated, HfDinov3Gated)
DIALECT(hf_dpt, HfDpt)
DIALECT(hf_ijepa, HfIjepa)
DIALECT(hf_mae, HfMae)
DIALECT(hf_msn, HfMsn)
DIALECT(hf_sam, HfSam)
DIALECT(hf_swin, HfSwin)
DIALECT(hf_swin_model, HfSwinModel)
DIALECT(hf_swin_v2, HfSwinV2)
DIALECT(dinov2, Dinov2)
DIALECT(dinov2_registers, Dinov2Registers)
DIALECT(open_clip, OpenClip)

}  // namespace
}  // namespace tessera::test
