[[maybe_unused]] static inline void v_store_some_int8(int8* p, vec x, int n) {
  n == lanes ? v_store_int8(p, x) : v_store_n_int8(p, x, n);
}
