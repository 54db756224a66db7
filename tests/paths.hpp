// Where what tests use lies: test_paths (Support.cmake) defines for each test program those that it needs. An absolute
// path in the command line, as a macro, would keep a compiler cache from what was compiled in another folder.
#pragma once

namespace tessera::paths {

extern const char* const golden;           ///< tests/golden
extern const char* const sample_program;   ///< the program that a test runs
extern const char* const serving_program;  ///< the same with the command serve
extern const char* const vqgan_program;    ///< vqgan_digits
extern const char* const gpt_program;      ///< taming_digits
extern const char* const faults_shim;      ///< to be preloaded (tests/faults)
extern const char* const trained_program;  ///< one that trains what the sample program reads
extern const char* const probe;            ///< programs of tests/cuda
extern const char* const probe_bf16;
extern const char* const inference;
extern const char* const without_cuda;
extern const char* const generator;    ///< test_generator
extern const char* const onnx_page;    ///< docs/reference/onnx-coverage.md
extern const char* const summaries;    ///< tests/models/summary
extern const char* const simd_table;   ///< tests/kernels/simd_table.inc
extern const char* const odd_tiles;    ///< tests/models/odd_tiles.txt
extern const char* const ranks_mpich;  ///< programs of tests/distributed
extern const char* const ranks_allreduce;
extern const char* const ranks_none;
extern const char* const ranks_mnist;
extern const char* const ranks_cuda;
extern const char* const ranks_cuda_alone;  ///< without NCCL
extern const char* const openmpi_run;       ///< mpirun of Open MPI
extern const char* const mpich_run;

}  // namespace tessera::paths
