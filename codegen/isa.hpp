// The table of instruction sets (ISAs): all that the plan, the emitters, the driver, tessera_add_model and the tests
// know of them. A new one is a row of isas.def and the texts that it names; what is missing does not compile, or
// tests/codegen/isa_test.cpp says it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "codegen/precision.hpp"

namespace tessera::codegen {

/// A few values inside a constant. More than it has room for do not compile.
template <class T>
class Few {
 public:
  constexpr Few() = default;
  constexpr Few(std::initializer_list<T> values) {
    for (const T& value : values) values_.at(size_++) = value;
  }
  constexpr const T* begin() const { return values_.data(); }
  constexpr const T* end() const { return values_.data() + size_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr bool contains(const T& value) const { return std::find(begin(), end(), value) != end(); }

 private:
  std::array<T, 10> values_{};
  std::size_t size_ = 0;
};

/// The first member of an aggregate that is initialised by its members' names alone: a value in its place does not
/// convert, so no positional initialiser compiles, and none can put a value into the wrong member.
struct DesignatedOnly {
  explicit DesignatedOnly() = default;
};

/// The processors that run an instruction set.
enum class Family : std::uint8_t { portable, x86_64, aarch64 };
/// As compilers call it: __x86_64__ is the macro of its compilers.
constexpr const char* name_of(Family f) {
  return f == Family::x86_64 ? "x86_64" : f == Family::aarch64 ? "aarch64" : "portable";
}

/// A unit that multiplies whole tiles. amx: Linux hands it out on request only.
enum class MatrixUnit : std::uint8_t { none, amx };

/// An instruction set. Texts are files of codegen/cpu/simd without ".h".
struct Isa {
  DesignatedOnly designated{};
  std::string_view name;                 ///< of emitted files and functions, and of --isa, ISA and TESSERA_ISA
  Few<Precision> precisions;             ///< that it is emitted for
  bool by_default = false;               ///< whether it is emitted where nothing else is asked for
  Family family;                         ///< its text is compiled for that alone
  Few<std::string_view> cpu_features{};  ///< that CPUID has to say, as __builtin_cpu_supports calls them; of x86-64
  MatrixUnit matrix_unit = MatrixUnit::none;
  int lanes;                        ///< reals in a vector register
  int accumulators;                 ///< vector registers that a tile of sums may hold
  Few<int> columns;                 ///< vectors across the tile of a GEMM, the best first
  int product_sums;                 ///< vector registers that such a tile may hold
  std::int64_t bf16_tile_rows = 0;  ///< products of bf16 are made by tiles of so many rows at most; 0: they are not
  std::string_view vectors;         ///< text of the vectors, which all else is written in
  Few<std::string_view> begin;      ///< texts before the namespace: headers, pragmas of the target
  std::string_view end;             ///< text behind it
  Few<std::string_view>
      bf16{};  ///< texts of values of bf16, of int8's caches and int4's scales too, and of their products, in order
  std::string_view pack_bf16{};  ///< text that packs the parameters which they read
  Few<std::string_view> int8{};  ///< texts of products of int8, in order
  Few<std::string_view> int4{};  ///< texts of products of int8 with weights of int4, in order, behind those of bf16
};

namespace isa_table {
using enum Family;
using enum Precision;
inline constexpr Isa isas[] = {
#include "codegen/isas.def"
};
}  // namespace isa_table
using isa_table::isas;

/// The row of that name; null: there is none.
constexpr const Isa* find_isa(std::string_view name) {
  const auto at = std::find_if(std::begin(isas), std::end(isas), [&](const Isa& isa) { return isa.name == name; });
  return at == std::end(isas) ? nullptr : at;
}

namespace isa_table {
template <class Predicate>
constexpr bool all(Predicate predicate) {
  return std::all_of(std::begin(isas), std::end(isas), predicate);
}

static_assert(all([](const Isa& isa) { return &isa == find_isa(isa.name); }), "two instruction sets have one name");
static_assert(all([](const Isa& isa) { return (isa.family == Family::portable) == (&isa == &isas[0]); }) &&
                  isas[0].name == "scalar" && isas[0].lanes == 1,
              "the first instruction set is scalar, which every machine can run, and it alone is portable");
static_assert(all([](const Isa& isa) { return isa.family != Family::x86_64 || !isa.cpu_features.empty(); }),
              "an instruction set of x86-64 has no cpu_features: without a CPUID test no program would choose it");
static_assert(all([](const Isa& isa) { return isa.family == Family::x86_64 || isa.cpu_features.empty(); }),
              "an instruction set has cpu_features and is not of x86-64: nothing would test them");
static_assert(all([](const Isa& isa) {
                return isa.lanes > 0 && isa.accumulators > 0 && isa.product_sums > 0 && !isa.columns.empty();
              }),
              "an instruction set lacks lanes, accumulators, columns or product_sums");
static_assert(all([](const Isa& isa) {
                const bool bf16 = isa.precisions.contains(Precision::bf16),
                           int8 = isa.precisions.contains(Precision::int8),
                           int4 = isa.precisions.contains(Precision::int4);
                return !isa.precisions.empty() && (bf16 || int8 || int4) == !isa.bf16.empty() &&
                       bf16 == !isa.pack_bf16.empty() && int8 == !isa.int8.empty() && int4 == !isa.int4.empty();
              }),
              "an instruction set lacks the texts of a precision that it is emitted for, or has those of another");
static_assert(all([](const Isa& isa) { return !isa.vectors.empty() && !isa.begin.empty() && !isa.end.empty(); }),
              "an instruction set lacks the texts vectors, begin or end");
}  // namespace isa_table

}  // namespace tessera::codegen
