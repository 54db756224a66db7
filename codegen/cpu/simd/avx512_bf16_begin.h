#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512bf16,avx512vnni,avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512bf16,avx512vnni,avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#endif
