// Operations that move, cut, join and widen axes, and the ways to name an axis.
#include <array>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tests/dsl/ops_fixture.hpp"

namespace {

using namespace tessera;

constexpr auto B = axis<"B">;
constexpr auto N = axis<"N", 3>;
constexpr auto H = axis<"H", 2>;
constexpr auto K = axis<"K", 2>;
constexpr auto D = axis<"D", H * K>;
constexpr auto CLS = axis<"CLS", 1>;
constexpr auto R = axis<"R", 2>;
constexpr auto T = axis<"T", CLS + N>;
constexpr auto J = axis<"J", T>;
constexpr auto ALL = axis<"ALL", T + R>;

class Axes : public test::Ops {};

TEST_F(Axes, AnAxisIsGivenByNumberByNameOrAsAValue) {
  const auto x = counted<Tensor<B, N, D>>();
  EXPECT_EQ(node(softmax<1>(x)).axes, std::vector<int>{1});
  EXPECT_EQ(node(softmax<-2>(x)).axes, std::vector<int>{1});
  EXPECT_EQ(node(softmax<"N">(x)).axes, std::vector<int>{1});
  EXPECT_EQ(node(softmax<N>(x)).axes, std::vector<int>{1});
}

TEST_F(Axes, AnAxisIsNamedAsItIsShown) {
  const auto x = counted<Tensor<B, N + 1_c, H * K>>();
  EXPECT_EQ(node(log_softmax<"N+1">(x)).axes, std::vector<int>{1});
  EXPECT_EQ(node(log_softmax<H * K>(x)).axes, std::vector<int>{2});
  const Tensor<B, N + 1_c, D> same = x;
  EXPECT_EQ(node(log_softmax<D>(same)).axes, std::vector<int>{2});
}

TEST_F(Axes, AnAliasTellsTwoEqualAxesApart) {
  const auto q = counted<Tensor<B, H, T, K>>();
  const Tensor<B, H, T, J> scores = einsum<"b h i k, b h j k -> b h i j">(q, q);
  EXPECT_EQ(node(softmax<T>(scores)).axes, std::vector<int>{2});
  EXPECT_EQ(node(softmax<J>(scores)).axes, std::vector<int>{3});
}

TEST_F(Axes, TheFirstOfTwoEqualAxesIsSummedOverWhereItIsRenamedOrBelongsToAWeight) {
  constexpr auto QUERIES = axis<"QUERIES", T.value.value()>;
  const auto p = counted<Tensor<B, H, T, T>>();
  const auto v = counted<Tensor<B, H, T, K>>();
  const auto transposed = einsum<"b h i j, b h i k -> b h j k">(rename<2>(p, QUERIES), rename<2>(v, QUERIES));
  static_assert(std::is_same_v<std::remove_const_t<decltype(transposed)>, Tensor<B, H, T, K>>);
  EXPECT_EQ(run(transposed), run(einsum<"b h j i, b h i k -> b h j k">(rearrange<"b h i j -> b h j i">(p), v)));
  const auto x = counted<Tensor<B, N, D>>();
  const auto w = counted<Tensor<D, D>>();
  static_assert(std::is_same_v<decltype(einsum<"b n d, d e -> b n e">(x, w)), Tensor<B, N, D>>);
}

TEST_F(Axes, EveryOperationOverAnAxisTakesItsName) {
  const auto x = counted<Tensor<B, N, D>>();
  EXPECT_EQ(run(slice<N>(x, 1_c, 2_c)), run(slice<1>(x, 1_c, 2_c)));
  EXPECT_EQ(run(take<N>(x, 1_c)), run(take<1>(x, 1_c)));
  EXPECT_EQ(run(chunk<D>(x, H)[1]), run(chunk<2>(x, H)[1]));
  EXPECT_EQ(run(concat<N>(x, x)), run(concat<1>(x, x)));
  EXPECT_EQ(run(unstack<"N">(x, N)[2]), run(unstack<1>(x, N)[2]));
  EXPECT_EQ(run(concat<K>(chunk<D>(x, H), H)), run(x));
  static_assert(std::is_same_v<decltype(rename<N>(x, axis<"WORDS", 3>)), Tensor<B, axis<"WORDS", 3>, D>>);
}

TEST_F(Axes, APartOfASumIsFoundByItsName) {
  const auto x = counted<Tensor<B, T, K>>();
  const Tensor<B, K> token = take<CLS>(x);
  const Tensor<B, N, K> patches = part<N>(x);
  const Tensor<B, CLS, K> kept = part<CLS>(x);
  EXPECT_EQ(run(token), (Numbers{0, 1, 8, 9}));
  EXPECT_EQ(run(kept), (Numbers{0, 1, 8, 9}));
  EXPECT_EQ(run(patches), (Numbers{2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15}));
}

TEST_F(Axes, APartMayBeASumItself) {
  const auto x = counted<Tensor<ALL, K>>();
  const Tensor<T, K> tokens = part<T>(x);
  const Tensor<N, K> patches = part<N>(x);
  const Tensor<R, K> registers = part<R>(x);
  EXPECT_EQ(run(tokens), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(run(patches), (Numbers{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(run(registers), (Numbers{8, 9, 10, 11}));
  EXPECT_EQ(node(part<N + R>(x)).offset, 1);
}

TEST_F(Axes, ASliceThatHasTheNameOfAPartIsThatPart) {
  const auto x = counted<Tensor<ALL, K>>();
  EXPECT_EQ(run(slice<0>(x, 1_c, N)), run(part<N>(x)));
  EXPECT_EQ(run(slice<0>(x, CLS, N)), run(part<N>(x)));
  EXPECT_EQ(run(slice<0>(x, T, R)), run(part<R>(x)));
  EXPECT_EQ(run(slice<0>(x, CLS, N + R)), run(part<N + R>(x)));
  EXPECT_EQ(node(slice<0>(x, 2_c, 3_c)).offset, 2) << "a number is no name";
  EXPECT_EQ(node(slice<0>(x, 2_c, H)).offset, 2) << "and H no part of it";

  const auto sliced = [](const Shape& shape, const Dim& offset, const Dim& length) {
    return std::string(detail::slice_problem("slice", 0, shape, offset, length).view());
  };
  constexpr Shape all = Tensor<ALL>::shape, numbered = Tensor<R + N + 1_c>::shape, window = Tensor<N + 2_c>::shape;
  EXPECT_EQ(sliced(all, (2_c).value, N.value),
            "slice<0> of [ALL=6] takes N=3 positions from 2, and N begins at CLS=1 (did you mean slice<0>(x, CLS, N)?) "
            "[slice-part]");
  EXPECT_EQ(sliced(all, (0_c).value, (CLS + R).value),
            "slice<0> of [ALL=6] takes CLS+R=3 positions from 0, and CLS+R is no run of its parts CLS, N, R "
            "[slice-part]");
  EXPECT_EQ(
      sliced(numbered, (1_c).value, N.value),
      "slice<0> of [N+R+1=6] takes N=3 positions from 1, and leaves R behind them, and a sum with a number has no "
      "order (did you mean slice<0>(x, R + 1_c, N)? else name the number: axis<CLS, 1>) [slice-part]");
  EXPECT_NE(sliced(numbered, R.value, N.value), "");
  EXPECT_EQ(sliced(numbered, (R + 1_c).value, N.value), "");
  EXPECT_EQ(sliced(numbered, (3_c).value, N.value), "") << "its end is N's, if it is the last";
  EXPECT_EQ(sliced(numbered, (0_c).value, N.value), "");
  EXPECT_EQ(sliced(window, (1_c).value, N.value), "") << "between two rows of padding";
}

TEST_F(Axes, APartIsOfTheAxisThatIsSaid) {
  const auto scores = counted<Tensor<B, T, J>>();
  const Tensor<B, T, N> keys = part<N, J>(scores);
  const Tensor<B, N, J> queries = part<N, 1>(scores);
  EXPECT_EQ(node(keys).axes, std::vector<int>{2});
  EXPECT_EQ(node(queries).axes, std::vector<int>{1});
  const Tensor<B, T> first = take<CLS, J>(scores);
  EXPECT_EQ(run(first), (Numbers{0, 4, 8, 12, 16, 20, 24, 28}));
}

TEST_F(Axes, ConcatOfThePartsIsTheSum) {
  const auto token = counted<Tensor<B, CLS, K>>();
  const auto patches = counted<Tensor<B, N, K>>();
  const auto registers = counted<Tensor<B, R, K>>();
  const Tensor<B, ALL, K> all = concat<1>(token, patches, registers);
  EXPECT_EQ(run(part<N>(all)), run(patches));
  EXPECT_EQ(run(part<R>(all)), run(registers));
}

TEST(PartOrder, MattersToShapesAndNotToDims) {
  constexpr auto forwards = CLS + N;
  constexpr auto backwards = N + CLS;
  static_assert(forwards.value == backwards.value);
  static_assert(!forwards.value.lines_up_with(backwards.value));
  static_assert(!(Tensor<CLS + N>::shape == Tensor<N + CLS>::shape));
  static_assert(Tensor<T, R>::shape == Tensor<CLS + N, R>::shape);
  static_assert(Tensor<ALL>::shape == Tensor<CLS + (N + R)>::shape);
  static_assert(Tensor<N + 1_c>::shape == Tensor<1_c + N>::shape, "a number has no place");
  static_assert(Tensor<N + N>::shape == Tensor<2_c * N>::shape, "parts of one name are one part");
}

TEST_F(Axes, PermuteAndTransposeMoveAxes) {
  const auto x = counted<Tensor<B, N, K>>();
  const Tensor<K, B, N> moved = permute<2, 0, 1>(x);
  EXPECT_EQ(run(moved), run(rearrange<"b n k -> k b n">(x)));
  const Tensor<B, K, N> swapped = transpose<1, 2>(x);
  EXPECT_EQ(run(swapped), (Numbers{0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11}));
  EXPECT_EQ(run(transpose<"K", "N">(x)), run(swapped));
  EXPECT_EQ(run(permute<B, K, N>(x)), run(swapped));
}

TEST_F(Axes, ExpandPutsAxesWhereTheirNamesAre) {
  const auto x = counted<Tensor<N, B>>();
  const Tensor<B, K, N> wide = expand<B, K, N>(x);
  EXPECT_EQ(run(wide), (Numbers{0, 2, 4, 0, 2, 4, 1, 3, 5, 1, 3, 5}));
  const auto keep = counted<Tensor<B, J>>();
  const auto scores = counted<Tensor<B, H, T, J>>();
  const auto mask = expand_as(keep, scores);
  EXPECT_EQ(node(mask).axes, (std::vector<int>{0, 3}));
  EXPECT_EQ(run(scores + mask)[17], 17 + 1);  // b = 0, h = 1, t = 0, j = 1
}

TEST_F(Axes, ExpandStretchesAxesOfSizeOne) {
  const auto x = counted<Tensor<B, 1_c, K>>();
  const Tensor<B, N, K> wide = expand<B, N, K>(x);
  EXPECT_EQ(run(wide), (Numbers{0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3}));
}

TEST_F(Axes, ExpandToItsOwnShapeRecordsNothing) {
  const auto x = counted<Tensor<B, N>>();
  EXPECT_EQ((expand<B, N>(x).id), x.id);
}

TEST_F(Axes, SplitCutsAnAxisIntoSizes) {
  const auto x = counted<Tensor<B, N + 1_c, K>>();
  const auto [token, patches] = split<1>(x, 1_c, N);
  static_assert(std::is_same_v<decltype(token), const Tensor<B, 1_c, K>>);
  static_assert(std::is_same_v<decltype(patches), const Tensor<B, N, K>>);
  EXPECT_EQ(run(token), (Numbers{0, 1, 8, 9}));
  EXPECT_EQ(run(patches), (Numbers{2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15}));
  const auto parts = split<ALL>(counted<Tensor<B, ALL, K>>(), T, R);
  const Tensor<B, R, K> registers = std::get<1>(parts);
  EXPECT_EQ(node(registers).offset, 4);
}

TEST_F(Axes, StackMakesAnAxisAnywhere) {
  const auto x = counted<Tensor<B, K>>();
  const auto y = x + 10.0;
  const Tensor<2_c, B, K> first = stack<0>(x, y);
  const Tensor<B, K, 2_c> last = stack<-1>(x, y);
  EXPECT_EQ(run(first), (Numbers{0, 1, 2, 3, 10, 11, 12, 13}));
  EXPECT_EQ(run(last), (Numbers{0, 10, 1, 11, 2, 12, 3, 13}));
  const Tensor<B, H, K> heads = stack<1>(std::array{TensorOf<Tensor<B, K>::dims>(x.id), y}, H);
  EXPECT_EQ(run(heads), (Numbers{0, 1, 10, 11, 2, 3, 12, 13}));
  EXPECT_EQ(run(unstack<1>(heads, H)[1]), run(y));
}

TEST_F(Axes, ReshapeInfersOneAxis) {
  const auto x = counted<Tensor<B, N, H, K>>();
  const Tensor<B, N, D> merged = reshape<B, N, infer>(x);
  const Tensor<B, N, H, K> split = reshape<B, N, H, infer>(merged);
  const Tensor<B, N * D> flat = reshape<B, infer>(x);
  const Tensor<B, N, H, K, 1_c> longer = reshape<B, N, H, K, infer>(x);
  EXPECT_EQ(run(merged), run(x));
  EXPECT_EQ(run(split), run(x));
  EXPECT_EQ(run(flat), run(x));
  EXPECT_EQ(run(longer), run(x));
}

TEST_F(Axes, ARefusedAxisIsPassedOnWithoutAWord) {
  static_assert(std::is_same_v<decltype(permute<0>(Poison{})), Poison>);
  static_assert(std::is_same_v<decltype(part<N>(Poison{})), Poison>);
  static_assert(std::is_same_v<decltype(softmax<PoisonDim{}>(Tensor<B>{})), Poison>);
  static_assert(std::is_same_v<decltype(split<0>(Poison{}, N, K)), std::tuple<Poison, Poison>>);
  static_assert(std::is_same_v<decltype(expand<B>(Poison{})), Poison>);
  static_assert(std::is_same_v<decltype(stack<0>(Tensor<B>{}, Poison{})), Poison>);
  static_assert(std::is_same_v<decltype(reshape<infer>(Poison{})), Poison>);
}

}  // namespace
