/// How many blocks share a head of attention's forward pass (attention.h) that has so many rows, where there are
/// `heads` of them, a block has so many warps, and an SM room for so many blocks: those with the fewest
/// waves of blocks, each as long as the tiles that a warp of it has, and one more for bringing keys and values. Where a
/// kernel is started, and where its time is predicted.
inline unsigned attention_shares(std::int64_t heads, int rows, int warps, int at_a_time, int sms) {
  const std::int64_t tiles = (rows + 15) / 16, wave = std::int64_t{at_a_time} * sms;
  std::int64_t best = 0, least = 0;
  for (std::int64_t shares = 1; (shares - 1) * warps < tiles; ++shares) {
    const std::int64_t waves = (heads * shares + wave - 1) / wave;
    const std::int64_t time = waves * ((tiles + shares * warps - 1) / (shares * warps) + 1);
    if (best > 0 && time >= least) continue;
    best = shares;
    least = time;
  }
  return static_cast<unsigned>(best);
}
