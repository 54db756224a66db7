// Names of members as they are read from source.
#include "dsl/member_names.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace {

using tessera::detail::member_names;
using tessera::detail::unlisted_names;
using Names = std::vector<std::string>;

constexpr const char* source = R"(
struct Block : Module {
  Linear<D, D> of_another;
};
template <VitSpec S>
struct Block<S> : Base<{.width = S.width}> {  // a comment; with, marks
  static constexpr auto D = axis<"D", 8>;
  using Mlp = Sequential<Linear<D, M>, Gelu>;
  LayerNorm<D> norm1, norm2{1e-6};
  Mlp mlp;
  Parameter<D> gamma = Parameter<D>(constant(1)), scales[2];
  explicit Block(double epsilon = 1e-5) : norm1{epsilon}, norm2(epsilon) {}
  TESSERA_MEMBERS(Block, norm1, norm2, mlp)
  Tensor<B, D> forward(Tensor<B, D> x) const { return x + mlp(norm1(x)); }
  bool operator==(const Block&) const = default;
  Stack<Attention<D, H>, 12> layers;
};
struct Blocks : Module {
  Linear<D, D> behind;
};
)";

TEST(MemberNames, AreThoseOfTheLastStructOfTheName) {
  EXPECT_EQ(member_names(source, "Block", std::string(source).find("TESSERA")),
            (Names{"norm1", "norm2", "mlp", "gamma", "scales", "layers"}));
  EXPECT_EQ(member_names(source, "Block", std::string(source).find("template")), Names{"of_another"});
  EXPECT_EQ(member_names(source, "Blocks", std::string(source).size()), Names{"behind"});
  EXPECT_EQ(member_names(source, "Lock", std::string(source).size()), Names{});
  EXPECT_EQ(member_names("struct Open : Module { Linear<D, D> a; int", "Open", 40), Names{"a"});
}

TEST(MemberNames, TellWhichIsNotListedBehindAnother) {
  const std::string file = testing::TempDir() + "member_names.hpp";
  std::ofstream(file) << source;
  EXPECT_EQ(unlisted_names(file.c_str(), 13, "Block", "norm1, norm2, layers", "norm2"), "mlp or gamma or scales");
  EXPECT_EQ(unlisted_names(file.c_str(), 13, "Block", "norm2, mlp, gamma", nullptr), "norm1");
  EXPECT_EQ(unlisted_names(file.c_str(), 13, "Block", "norm1, norm2, mlp, gamma, scales", "scales"), "layers");
  EXPECT_EQ(unlisted_names("/nowhere.hpp", 13, "Block", "norm1", "norm1"), "");
}

}  // namespace
