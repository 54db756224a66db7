// What a program takes from its environment before it begins.
#pragma once

#include <cstdint>

namespace tessera::runtime {

inline constexpr std::int64_t most_threads = 4096;

/// Makes OpenMP use so many threads; 0: as many as it would. Throws an Error where OMP_NUM_THREADS asks for more than
/// most_threads, and in a program without OpenMP where more than one is asked for.
void use_threads(std::int64_t threads);

/// Throws an Error where a variable that kernels read is not what they read: they take no notice of it, and a person
/// should hear of it.
void check_environment();

}  // namespace tessera::runtime
