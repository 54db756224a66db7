// What `tessera declare` leaves out of a header is what the templates in models/ have.
#include "declare/kind.hpp"

#include <gtest/gtest.h>

#include "models/dpt.hpp"
#include "models/sam.hpp"
#include "models/swin_v2.hpp"
#include "models/vit.hpp"

namespace {

using namespace tessera;
using declare::Kind;

template <class Model>
declare::Input input() {
  const Preprocessing p = [] {
    if constexpr (HasRecipe<Model>)
      return Model::recipe.input;
    else
      return Model::input;
  }();
  return {p.mean.values, p.deviation.values, p.crop, p.interpolation == Interpolation::bilinear,
          static_cast<runtime::Fit>(p.fit)};
}

TEST(Declare, KnowsHowTheTemplatesHavePicturesPrepared) {
  EXPECT_EQ(input<models::Vit<{}>>(), declare::input_of(Kind::vit));
  EXPECT_EQ(input<models::Vit<{.classes = 0}>>(), declare::input_of(Kind::vit));
  EXPECT_EQ(input<models::Swin<{}>>(), declare::input_of(Kind::swin));
  EXPECT_EQ(input<models::Swin<{.classes = 0}>>(), declare::input_of(Kind::swin));
  EXPECT_EQ(input<models::SamEncoder<{}>>(), declare::input_of(Kind::sam));
  EXPECT_EQ(input<models::SamEncoder<{.classes = 10}>>(), declare::input_of(Kind::sam));
  EXPECT_EQ(input<models::DepthAnythingSmall>(), declare::input_of(Kind::depth));
}

}  // namespace
