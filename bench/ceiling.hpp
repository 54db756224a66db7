// What the machine gives at best, to measure kernels against; C linkage, since peers/cpu.py calls it as well.
#pragma once

#include <cstdint>

extern "C" {

/// GFLOP/s of fused multiply-adds on registers, on so many threads; 0 where the processor lacks the instructions.
/// wide: 512-bit vectors; else 256-bit ones.
double ceiling_gflops(int wide, int threads);

/// The same at the clock that whatever ran just before has left: a processor may lower it further under matrix products
/// than under multiply-adds that stay on registers, and raise it again only after some time.
double ceiling_after_work_gflops(int wide, int threads);

/// GB/s of y[i] = 2 x[i] over arrays of so many floats, in which a pass has just been made: bytes read and written.
/// Each thread has its own part. Small arrays show the bandwidth of L1 or L2. 0 where the processor lacks the
/// instructions.
double ceiling_copy_gbytes(int wide, int threads, std::int64_t floats);
}
