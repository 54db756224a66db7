// The instruction sets that the tests of emitted models ask for, the widest last.
#pragma once

namespace tessera::test {

#if defined(__aarch64__)
inline constexpr const char* instruction_sets[] = {"scalar", "neon"};
#else
inline constexpr const char* instruction_sets[] = {"scalar", "avx2", "avx512"};
#endif

}  // namespace tessera::test
