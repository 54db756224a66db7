/// Two neighbours along a row, which a thread computes and stores together: what is done with numbers is done with
/// either. A number that both share becomes one.
struct alignas(2 * sizeof(real)) Pair {
  real first, second;
  TESSERA_DEVICE Pair(real both = 0) : first(both), second(both) {}
  TESSERA_DEVICE Pair(real one, real other) : first(one), second(other) {}
};
TESSERA_DEVICE Pair operator+(Pair a, Pair b) { return {a.first + b.first, a.second + b.second}; }
TESSERA_DEVICE Pair operator-(Pair a, Pair b) { return {a.first - b.first, a.second - b.second}; }
TESSERA_DEVICE Pair operator*(Pair a, Pair b) { return {a.first * b.first, a.second * b.second}; }
TESSERA_DEVICE Pair operator/(Pair a, Pair b) { return {a.first / b.first, a.second / b.second}; }
TESSERA_DEVICE Pair operator-(Pair a) { return {-a.first, -a.second}; }
TESSERA_DEVICE Pair gelu(Pair x) { return {gelu(x.first), gelu(x.second)}; }
TESSERA_DEVICE Pair gelu_gradient(Pair x) { return {gelu_gradient(x.first), gelu_gradient(x.second)}; }
TESSERA_DEVICE Pair one_if_positive(Pair x) { return {one_if_positive(x.first), one_if_positive(x.second)}; }
TESSERA_DEVICE Pair larger(Pair a, Pair b) { return {larger(a.first, b.first), larger(a.second, b.second)}; }

/// Two numbers, so far apart.
TESSERA_DEVICE Pair load_two(const real* from, int apart) { return {from[0], from[apart]}; }
TESSERA_DEVICE Pair load_two(const bf16* from, int apart) { return {widened(from[0]), widened(from[apart])}; }
TESSERA_DEVICE void store_two(real* to, int apart, Pair x) {
  to[0] = x.first;
  to[apart] = x.second;
}
TESSERA_DEVICE void store_two(bf16* to, int apart, Pair x) {
  to[0] = rounded(x.first);
  to[apart] = rounded(x.second);
}
/// Neighbours, the first of which lies on a multiple of two, by one instruction.
TESSERA_DEVICE Pair load_pair(const real* from) { return *reinterpret_cast<const Pair*>(from); }
TESSERA_DEVICE Pair load_pair(const bf16* from) {
  const std::uint32_t both = *reinterpret_cast<const std::uint32_t*>(from);
  return {widened(bf16{static_cast<std::uint16_t>(both)}), widened(bf16{static_cast<std::uint16_t>(both >> 16)})};
}
TESSERA_DEVICE void store_pair(real* to, Pair x) { *reinterpret_cast<Pair*>(to) = x; }
TESSERA_DEVICE void store_pair(bf16* to, Pair x) {
  *reinterpret_cast<std::uint32_t*>(to) = rounded_pair(x.first, x.second);
}
