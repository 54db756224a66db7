[[maybe_unused]] static inline vec v_load_some_bf16(const bf16* p, int n) {
  return n == lanes ? v_load_bf16(p) : v_load_n_bf16(p, n);
}
[[maybe_unused]] static inline void v_store_some_bf16(bf16* p, vec x, int n) {
  n == lanes ? v_store_bf16(p, x) : v_store_n_bf16(p, x, n);
}
