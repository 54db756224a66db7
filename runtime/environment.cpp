#include "runtime/environment.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "runtime/error.hpp"

namespace tessera::runtime {

void use_threads(std::int64_t threads) {
#ifdef _OPENMP
  if (threads > 0) omp_set_num_threads(static_cast<int>(threads));
  // OpenMP itself ends the program where it cannot hold so many.
  if (omp_get_max_threads() > most_threads)
    fail("OMP_NUM_THREADS asks for ", omp_get_max_threads(), " threads, more than the ", most_threads,
         " that can be used");
#else
  if (threads > 1) fail("this program was built without OpenMP: it runs on one thread, not on ", threads);
#endif
}

void check_environment() {
  const char* const given = std::getenv("TESSERA_L2_BYTES");
  if (!given || !*given) return;
  const char* const end = given + std::strlen(given);
  std::int64_t bytes = 0;
  if (const auto [read, error] = std::from_chars(given, end, bytes); error != std::errc{} || read != end || bytes < 1)
    fail("TESSERA_L2_BYTES=", given, " is not a number of bytes above 0");
}

}  // namespace tessera::runtime
