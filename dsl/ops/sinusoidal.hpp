// sinusoidal and sinusoidal_2d: the fixed tables of positions.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "dsl/ops/shared_table.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// The table [Length, Width]: sin(p / 10000^(c/Width)) at even columns c, cos(p / 10000^((c-1)/Width)) at odd ones.
/// Vaswani et al. 2017, section 3.5. One table of a size stands once in a region. Sentence: [dim-unknown].
/// PyTorch equivalent: torch.where(c % 2 == 0, torch.sin(angle), torch.cos(angle)).
template <DimExpression auto Length, DimExpression auto Width>
auto sinusoidal() {
  using Table = Tensor<Length, Width>;
  if constexpr (Table::dims::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::table_problem("sinusoidal", Table::shape); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      const std::int64_t length = Table::shape[0].value(), width = Table::shape[1].value();
      return detail::shared_table<Table>("sinusoidal_" + std::to_string(length) + "x" + std::to_string(width), [&] {
        std::vector<double> data;
        for (std::int64_t p = 0; p < length; ++p)
          for (std::int64_t c = 0; c < width; ++c) {
            const double rate = std::pow(10000.0, -static_cast<double>(c - c % 2) / static_cast<double>(width));
            const double angle = static_cast<double>(p) * rate;
            data.push_back(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
          }
        return data;
      });
    }
  }
}

/// The table [Rows*Columns, Width] of positions in a grid, row by row. With Q = Width/4 and rates 10000^(-i/Q), i < Q,
/// a position in row y and column x is sin(x rate), cos(x rate), sin(y rate), cos(y rate), Q numbers each: half of the
/// width for columns, half for rows. That is get_2d_sincos_pos_embed of He et al. 2022 (facebookresearch/mae,
/// util/pos_embed.py, where "w goes first"), and of Chen et al. 2021 (facebookresearch/moco-v3, vits.py), who count
/// column by column. When inclusive, the rates are 10000^(-i/(Q-1)), the last one being 1/10000 itself: Beyer et al.
/// 2022 (posemb_sincos_2d of google-research/big_vision). Sentences: [sinusoidal-width], [dim-unknown].
/// PyTorch equivalent: get_2d_sincos_pos_embed(width, grid).
template <DimExpression auto Rows, DimExpression auto Columns, DimExpression auto Width, bool inclusive = false>
auto sinusoidal_2d() {
  using Table = decltype(Tensor<Rows * Columns, Width>{});
  if constexpr (Table::dims::poisoned) {
    return Poison{};
  } else {
    constexpr auto problem = [] {
      Text t = detail::table_problem("sinusoidal_2d", Table::shape);
      if (t.size || Table::shape[1].value() % 4 == 0) return t;
      t.put("sinusoidal_2d ");
      Table::shape.print(t);
      t.put(": a position is sin and cos of a column and of a row, and 4 does not divide ");
      Table::shape[1].print(t);
      t.put("; nearest that work: ");
      const std::int64_t below = Table::shape[1].value() / 4 * 4;
      if (below) t.put(below).put(" or ");
      t.put(below + 4).put(" [sinusoidal-width]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      const std::int64_t rows = Rows.value.value(), columns = Columns.value.value();
      const std::int64_t quarter = Table::shape[1].value() / 4;
      const std::int64_t steps = inclusive && quarter > 1 ? quarter - 1 : quarter;
      std::string name = std::string(inclusive ? "sinusoidal_2d_inclusive_" : "sinusoidal_2d_") + std::to_string(rows) +
                         "x" + std::to_string(columns);
      return detail::shared_table<Table>(name + "x" + std::to_string(4 * quarter), [&] {
        std::vector<double> data;
        for (std::int64_t y = 0; y < rows; ++y)
          for (std::int64_t x = 0; x < columns; ++x)
            for (const std::int64_t p : {x, y})
              for (const bool cosine : {false, true})
                for (std::int64_t i = 0; i < quarter; ++i) {
                  const double rate = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(steps));
                  const double angle = static_cast<double>(p) * rate;
                  data.push_back(cosine ? std::cos(angle) : std::sin(angle));
                }
        return data;
      });
    }
  }
}

}  // namespace tessera
