// Neighbours in memory, which a thread loads and stores at once.
template <class T, int count>
struct alignas(sizeof(T) * count) Neighbours {
  T numbers[count];
};
/// The caller's memory need not begin on such a multiple.
template <int bytes>
TESSERA_DEVICE bool begins_on(const void* place) {
  return reinterpret_cast<std::uintptr_t>(place) % bytes == 0;
}

/// Four or eight; 16 bytes at a time where they lie so.
template <int count>
TESSERA_DEVICE void load_vector(real (&to)[count], const real* from) {
  if (begins_on<16>(from)) {
    TESSERA_UNROLL
    for (int i = 0; i < count; i += 4) {
      const Neighbours<real, 4> four = *reinterpret_cast<const Neighbours<real, 4>*>(from + i);
      TESSERA_UNROLL
      for (int j = 0; j < 4; ++j) to[i + j] = four.numbers[j];
    }
  } else {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) to[i] = from[i];
  }
}
/// The same of bf16, widened: 8 or 16 bytes.
template <int count>
TESSERA_DEVICE void load_vector(real (&to)[count], const bf16* from) {
  if (begins_on<2 * count>(from)) {
    const Neighbours<bf16, count> all = *reinterpret_cast<const Neighbours<bf16, count>*>(from);
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) to[i] = widened(all.numbers[i]);
  } else {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) to[i] = widened(from[i]);
  }
}
template <int count>
TESSERA_DEVICE void store_vector(real* to, const real (&from)[count]) {
  if (begins_on<16>(to)) {
    TESSERA_UNROLL
    for (int i = 0; i < count; i += 4)
      *reinterpret_cast<Neighbours<real, 4>*>(to + i) = {from[i], from[i + 1], from[i + 2], from[i + 3]};
  } else {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) to[i] = from[i];
  }
}
template <int count>
TESSERA_DEVICE void store_vector(bf16* to, const real (&from)[count]) {
  Neighbours<bf16, count> all;
  TESSERA_UNROLL
  for (int i = 0; i < count; i += 2) {
    const std::uint32_t pair = rounded_pair(from[i], from[i + 1]);
    all.numbers[i].bits = static_cast<std::uint16_t>(pair);
    all.numbers[i + 1].bits = static_cast<std::uint16_t>(pair >> 16);
  }
  if (begins_on<2 * count>(to)) {
    *reinterpret_cast<Neighbours<bf16, count>*>(to) = all;
  } else {
    TESSERA_UNROLL
    for (int i = 0; i < count; ++i) to[i] = all.numbers[i];
  }
}

/// f of each lane of a vector, one after the other.
template <int count, class F>
TESSERA_DEVICE void unroll(const F& f) {
  TESSERA_UNROLL
  for (int lane = 0; lane < count; ++lane) f(lane);
}
