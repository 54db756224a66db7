#include "runtime/digits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "runtime/philox.hpp"

namespace tessera::runtime {
namespace {

constexpr int side = 28;

/// A place on the sheet; in glyphs from (0, 0), top left, to (100, 100), bottom right.
struct Point {
  double x, y;
};

enum Kind { straight, curved };

/// One movement of the pen through its points. A corner is where one stroke ends and the next begins.
struct Stroke {
  Kind kind;
  std::vector<Point> points;
};

using Glyph = std::vector<Stroke>;

/// The ways of writing each digit.
const std::array<std::vector<Glyph>, 10>& glyphs() {
  static const std::array<std::vector<Glyph>, 10> all{{
      {// 0: from the top round; begun at the right with an overlap; narrow
       {{curved, {{50, 3}, {20, 18}, {8, 50}, {20, 83}, {50, 97}, {80, 83}, {92, 50}, {80, 18}, {50, 3}}}},
       {{curved, {{72, 12}, {40, 3}, {14, 30}, {10, 66}, {36, 96}, {72, 88}, {92, 52}, {82, 16}, {52, 6}, {34, 12}}}},
       {{curved, {{54, 2}, {30, 24}, {24, 60}, {42, 97}, {66, 80}, {74, 42}, {54, 2}}}}},
      {// 1: a bare stroke; with an upstroke; with a foot
       {{straight, {{50, 2}, {50, 98}}}},
       {{straight, {{26, 26}, {54, 2}}}, {straight, {{54, 2}, {54, 98}}}},
       {{straight, {{30, 22}, {54, 3}}}, {straight, {{54, 3}, {54, 97}}}, {straight, {{24, 97}, {84, 97}}}}},
      {// 2: with a flat foot; with a loop; angular
       {{curved, {{12, 26}, {30, 6}, {60, 3}, {85, 22}, {76, 48}, {42, 74}, {8, 97}}}, {straight, {{8, 97}, {92, 95}}}},
       {{curved, {{12, 22}, {42, 3}, {80, 12}, {82, 38}, {52, 72}, {20, 93}, {8, 86}, {22, 76}, {52, 88}, {94, 94}}}},
       {{curved, {{18, 18}, {50, 2}, {80, 20}, {70, 46}}},
        {straight, {{70, 46}, {10, 96}}},
        {straight, {{10, 96}, {88, 97}}}}},
      {// 3: two bows; with a flat top; with a waist that loops
       {{curved, {{12, 13}, {45, 2}, {80, 15}, {74, 38}, {40, 48}}},
        {curved, {{40, 48}, {82, 58}, {88, 80}, {55, 98}, {8, 88}}}},
       {{straight, {{12, 5}, {82, 4}}},
        {straight, {{82, 4}, {42, 42}}},
        {curved, {{42, 42}, {85, 55}, {88, 82}, {50, 98}, {8, 86}}}},
       {{curved, {{16, 14}, {52, 2}, {80, 18}, {62, 44}, {38, 50}, {44, 43}, {78, 56}, {84, 82}, {48, 98}, {10, 84}}}}},
      {// 4: open at the top; closed; with a curved arm
       {{straight, {{28, 4}, {12, 58}}}, {straight, {{12, 58}, {94, 55}}}, {straight, {{76, 6}, {70, 98}}}},
       {{straight, {{68, 3}, {6, 66}}}, {straight, {{6, 66}, {96, 66}}}, {straight, {{68, 3}, {68, 98}}}},
       {{curved, {{20, 5}, {10, 34}, {26, 56}, {62, 52}, {82, 38}}}, {straight, {{84, 4}, {76, 98}}}}},
      {// 5: with a corner; the roof drawn last; in one bow
       {{straight, {{84, 4}, {26, 5}}},
        {straight, {{26, 5}, {20, 46}}},
        {curved, {{20, 46}, {52, 37}, {86, 54}, {84, 82}, {50, 98}, {8, 88}}}},
       {{straight, {{24, 10}, {20, 44}}},
        {curved, {{20, 44}, {58, 40}, {84, 62}, {70, 92}, {38, 98}, {10, 90}}},
        {straight, {{24, 10}, {88, 4}}}},
       {{curved, {{86, 6}, {50, 4}, {28, 12}, {22, 40}, {50, 42}, {80, 56}, {80, 84}, {46, 98}, {12, 86}}}}},
      {// 6: a wide bow; a straight back; a small bowl
       {{curved, {{76, 4}, {42, 20}, {14, 58}, {20, 90}, {54, 98}, {86, 80}, {76, 56}, {46, 52}, {16, 70}}}},
       {{curved, {{60, 2}, {28, 40}, {12, 74}, {38, 98}, {78, 90}, {82, 64}, {52, 54}, {18, 72}}}},
       {{curved, {{46, 2}, {24, 36}, {18, 76}, {42, 97}, {72, 88}, {70, 66}, {46, 60}, {22, 76}}}}},
      {// 7: plain; with a bar; with a hook and a bent leg
       {{straight, {{8, 6}, {92, 5}}}, {straight, {{92, 5}, {38, 98}}}},
       {{straight, {{10, 6}, {90, 6}}}, {straight, {{90, 6}, {42, 98}}}, {straight, {{34, 52}, {84, 50}}}},
       {{straight, {{10, 20}, {12, 5}}}, {straight, {{12, 5}, {88, 6}}}, {curved, {{88, 6}, {62, 42}, {50, 98}}}}},
      {// 8: in one line; two rings; narrow, open at the top
       {{curved,
         {{74, 14},
          {48, 2},
          {20, 14},
          {24, 34},
          {50, 47},
          {82, 66},
          {84, 88},
          {50, 98},
          {16, 88},
          {18, 66},
          {50, 47},
          {78, 32},
          {74, 14}}}},
       {{curved, {{50, 2}, {22, 12}, {22, 36}, {50, 46}, {78, 36}, {78, 12}, {50, 2}}},
        {curved, {{50, 46}, {14, 60}, {14, 88}, {50, 98}, {86, 88}, {86, 60}, {50, 46}}}},
       {{curved, {{76, 10}, {46, 4}, {24, 22}, {46, 44}, {74, 70}, {62, 96}, {34, 94}, {26, 72}, {54, 44}, {82, 8}}}}},
      {// 9: with a straight leg; with a round tail; with a slanted leg
       {{curved, {{82, 24}, {55, 3}, {20, 14}, {14, 40}, {42, 54}, {74, 44}, {84, 20}}},
        {straight, {{84, 20}, {78, 98}}}},
       {{curved, {{82, 22}, {50, 3}, {16, 20}, {20, 46}, {52, 54}, {82, 36}, {84, 22}, {84, 60}, {68, 92}, {26, 95}}}},
       {{curved, {{76, 16}, {44, 4}, {20, 26}, {36, 48}, {66, 40}, {76, 16}}}, {straight, {{76, 16}, {48, 98}}}}},
  }};
  return all;
}

/// What one hand does to the glyph: a bend, then slant, turn, scale and shift.
class Hand {
 public:
  explicit Hand(Random& random) {
    for (double& bend : bend_) bend = 0.055 * random.bell();
    // A rotation without sine and cosine, whose last bits differ between C libraries: t is the tangent of half the
    // angle.
    const double t = 0.055 * random.bell(), cosine = (1 - t * t) / (1 + t * t), sine = 2 * t / (1 + t * t);
    const double slant = 0.10 + 0.16 * random.bell();
    const double height = 20 * random.uniform(0.80, 1.02), width = height * random.uniform(0.52, 0.88);
    // Turn * slant * scale as one matrix.
    matrix_ = {cosine * width, (-cosine * slant - sine) * height, sine * width, (-sine * slant + cosine) * height};
    shift_ = {0.9 * random.bell(), 0.9 * random.bell()};
    for (double& wobble : wobble_) wobble = 0.022 * random.bell();
  }

  /// From glyph coordinates to pixels, around (0, 0).
  Point operator()(Point p) const {
    double x = p.x / 100 - 0.5, y = p.y / 100 - 0.5;
    // The same place always wobbles the same way, so that strokes that meet still meet.
    const auto place = static_cast<std::size_t>(p.x) * 7 + static_cast<std::size_t>(p.y) * 3;
    x += wobble_[place % wobble_.size()];
    y += wobble_[(place + 11) % wobble_.size()];
    const double bent_x = x + 4 * (bend_[0] * x * y + bend_[1] * y * y + bend_[2] * x * x);
    const double bent_y = y + 4 * (bend_[3] * x * y + bend_[4] * y * y + bend_[5] * x * x);
    return {matrix_[0] * bent_x + matrix_[1] * bent_y, matrix_[2] * bent_x + matrix_[3] * bent_y};
  }
  Point shift() const { return shift_; }

 private:
  std::array<double, 6> bend_{};
  std::array<double, 4> matrix_{};
  std::array<double, 23> wobble_{};
  Point shift_{};
};

/// The curve through the points (Catmull and Rom 1974), as short straight pieces.
std::vector<Point> polyline(const Stroke& stroke, const Hand& hand) {
  std::vector<Point> corner;
  for (const Point& p : stroke.points) corner.push_back(hand(p));
  const std::size_t last = corner.size() - 1, pieces = 6;
  std::vector<Point> line{corner[0]};
  for (std::size_t i = 0; i < last; ++i) {
    const Point before = corner[i ? i - 1 : 0], a = corner[i], b = corner[i + 1], after = corner[std::min(i + 2, last)];
    if (stroke.kind == straight) {
      line.push_back(b);
      continue;
    }
    for (std::size_t k = 1; k <= pieces; ++k) {
      const double t = static_cast<double>(k) / pieces;
      const auto blend = [&](double p, double q, double r, double s) {
        return q + 0.5 * t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)));
      };
      line.push_back({blend(before.x, a.x, b.x, after.x), blend(before.y, a.y, b.y, after.y)});
    }
  }
  return line;
}

using Ink = std::array<double, side * side>;

/// Adds the pen's mark from a to b: full within `radius`, fading over one pixel.
void mark(Ink& ink, Point a, Point b, double radius) {
  const double reach = radius + 0.5, dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const auto low = [&](double p, double q) {
    return std::clamp(static_cast<int>(std::floor(std::min(p, q) - reach)), 0, side);
  };
  const auto high = [&](double p, double q) {
    return std::clamp(static_cast<int>(std::ceil(std::max(p, q) + reach)) + 1, 0, side);
  };
  for (int y = low(a.y, b.y); y < high(a.y, b.y); ++y)
    for (int x = low(a.x, b.x); x < high(a.x, b.x); ++x) {
      const double along = length > 0 ? std::clamp(((x - a.x) * dx + (y - a.y) * dy) / length, 0.0, 1.0) : 0.0;
      const double off_x = x - (a.x + along * dx), off_y = y - (a.y + along * dy);
      const double cover = std::clamp(reach - std::sqrt(off_x * off_x + off_y * off_y), 0.0, 1.0);
      double& here = ink[static_cast<std::size_t>(y * side + x)];
      here = std::max(here, cover);
    }
}

void draw(int digit, Random& random, std::uint8_t* pixels) {
  const std::vector<Glyph>& ways = glyphs()[static_cast<std::size_t>(digit)];
  const Glyph& glyph = ways[random.below(static_cast<std::uint32_t>(ways.size()))];
  const Hand hand(random);
  std::vector<std::vector<Point>> lines;
  for (const Stroke& stroke : glyph) lines.push_back(polyline(stroke, hand));

  // The middle of what was drawn goes to the middle of the image, then moves by the shift.
  Point low{1e9, 1e9}, high{-1e9, -1e9};
  for (const auto& line : lines)
    for (const Point& p : line) {
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
  const double move_x = (side - 1) / 2.0 - (low.x + high.x) / 2 + hand.shift().x;
  const double move_y = (side - 1) / 2.0 - (low.y + high.y) / 2 + hand.shift().y;

  Ink ink{};
  const double width = random.uniform(0.75, 1.75), taper = random.uniform(-0.35, 0.35);
  for (const auto& line : lines)
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      const double progress = (static_cast<double>(i) + 0.5) / static_cast<double>(line.size() - 1) - 0.5;
      mark(ink, {line[i].x + move_x, line[i].y + move_y}, {line[i + 1].x + move_x, line[i + 1].y + move_y},
           width * (1 + taper * progress));
    }

  const double strength = random.uniform(175, 255), grain = random.uniform(0, 14);
  for (std::size_t i = 0; i < ink.size(); ++i) {
    const double noise = grain * random.bell(), value = ink[i] * strength + noise;
    pixels[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
  }
}

}  // namespace

Dataset draw_digits(std::int64_t count, std::uint64_t seed, Split split) {
  Dataset data;
  data.source = "built-in digits";
  data.channels = 1;
  data.height = data.width = side;
  data.classes = 10;
  data.pixels.resize(static_cast<std::size_t>(count * data.image_size()));
  data.labels.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    Random random(seed, split == Split::train ? training_digits : test_digits, static_cast<std::uint64_t>(i));
    const int digit = static_cast<int>(random.below(10));
    data.labels[static_cast<std::size_t>(i)] = digit;
    draw(digit, random, data.pixels.data() + i * data.image_size());
  }
  return data;
}

}  // namespace tessera::runtime
