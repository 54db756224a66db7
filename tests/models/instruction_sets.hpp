// The instruction sets that the tests of emitted models ask for, the widest last.
#pragma once

#include <string>

namespace tessera::test {

#if defined(__aarch64__)
inline const std::string instruction_sets[] = {"scalar", "neon"};
#else
inline const std::string instruction_sets[] = {"scalar", "avx2", "avx512"};
#endif

}  // namespace tessera::test
