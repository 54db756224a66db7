// What kernels should take on a GPU, from their plan. The generator includes this; emitted programs hold it as text.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::prediction {

/// A number that grows with the batch.
struct Linear {
  double fixed = 0, per_batch = 0;
  double at(std::int64_t batch) const { return fixed + per_batch * static_cast<double>(batch); }
};

/// What is known of a kernel when it is generated.
struct Kernel {
  std::string name;
  std::string emitted;  ///< the name under which it stands in NAME_cuda.cu, perhaps with others
  std::string only_on;  ///< this architecture; empty: on all
  int times = 0;        ///< that it is started
  struct Along {
    Linear count;
    int size = 1;      ///< that a block has of them
    int together = 1;  ///< blocks
  } grid[3];
  double resident = 0;  ///< blocks that an SM has at a time, or tiles of one block whose teams take turns
  Linear operations, bytes;
  bool on_tensor_cores = false, by_warpgroups = false;
  int tile = 0;          ///< rows and columns that a block of a matrix product brings, together; 0: it is none
  Linear depth;          ///< that a block of it sums over
  int factor_bytes = 4;  ///< of a number in its factors
  double alone = 0;      ///< cycles in which a block of it multiplies nothing
  Linear waits;          ///< for memory, one after the other, of a block that multiplies nothing at all
  Linear shared_bytes;   ///< that its sums over rows move through shared memory
  std::string shape;     ///< of its tiles, in words
  /// Forward, where several blocks may share a head (attention_shares), each of which brings `tile`.
  struct Attention {
    int rows = 0, warps = 0;  ///< of a head; of a block, each of which has 16 rows at a time; 0: it is none
    double of_tile = 0;       ///< cycles in which a warp with them multiplies nothing
    double tiles() const { return (rows + 15) / 16; }
  } attention;
};

struct Program {
  std::string name;
  std::vector<Kernel> kernels;
};

/// What a GPU can do at best.
struct Device {
  const char *architecture, *name;
  double sms;
  double for_clusters;  ///< SMs on which clusters of four blocks find room, in the groups that they come in
  double hertz;
  double bytes;            ///< a second, of its memory
  double on_tensor_cores;  ///< operations a second, of bf16 by mma.sync
  double by_warpgroups;    ///< by wgmma
  double in_fp32;          ///< without them
  double cached;           ///< bytes that an SM gets of L2 in a cycle
};
// Of an architecture the first one is meant. H200: 4.3 TB/s and 790 TFLOP/s measured; H100: 3.0 TB/s and 798 TFLOP/s;
// L2 of an H200 gives some 6.5 TB/s; mma.sync reaches some five eighths of what wgmma could without a limit of power.
inline const Device devices[] = {{"sm_80", "A100", 108, 0, 1.41e9, 1.9e12, 312e12, 0, 19.5e12, 32},
                                 {"sm_90a", "H200", 132, 128, 1.75e9, 4.3e12, 620e12, 790e12, 60e12, 38},
                                 {"sm_90a", "H100", 132, 128, 1.75e9, 3.0e12, 620e12, 790e12, 60e12, 38}};
constexpr double shared_bytes = 128;    // that it moves through its shared memory in a cycle
constexpr double memory_latency = 650;  // cycles until a number from its memory is there
constexpr double block_starts = 1;  // of a whole GPU in a cycle: 150,528 that store 2 bytes a thread take an H200 92 us
constexpr double between_starts = 2e-6;  // seconds from one kernel of a graph to the next

/// Blocks along x that attention is started with.
inline int shares_of(const Kernel& kernel, const Device& device, std::int64_t batch) {
  const auto heads = static_cast<std::int64_t>(kernel.grid[2].count.at(batch));
  return static_cast<int>(attention_shares(heads, kernel.attention.rows, kernel.attention.warps,
                                           static_cast<int>(kernel.resident), static_cast<int>(device.sms)));
}

inline double blocks_of(const Kernel& kernel, const Device& device, std::int64_t batch) {
  if (kernel.attention.rows) return kernel.grid[2].count.at(batch) * shares_of(kernel, device, batch);
  double blocks = 1;
  for (const Kernel::Along& along : kernel.grid)
    blocks *= std::ceil(along.count.at(batch) / along.size / along.together) * along.together;
  return blocks;
}

inline double sms_for(const Kernel& kernel, const Device& device) {
  return kernel.grid[0].together > 2 ? device.for_clusters : device.sms;
}

/// Waves of blocks, the last of which takes as long as a full one.
inline double waves_of(const Kernel& kernel, const Device& device, std::int64_t batch) {
  return blocks_of(kernel, device, batch) / (sms_for(kernel, device) * kernel.resident);
}

/// Cycles of one of attention's blocks: until its warps have gone through their tiles, and what an SM issues
/// for it, by a quarter of it for each of four warps. The last tiles are those of some warps, which are others in the
/// next head: of `present` blocks they overlap, but none takes less than its own time.
struct AttentionCycles {
  double block = 0, issued = 0;
};
inline AttentionCycles cycles_of(const Kernel::Attention& a, double shares, double present) {
  const double each = std::max(1.0, a.tiles() / (shares * a.warps)), whole = std::floor(each), rest = each - whole;
  const double last = rest > 0 ? std::max(rest * a.warps / 4, 1 / present) : 0;
  return {std::ceil(each) * a.of_tile, (whole * a.warps / 4 + last) * a.of_tile};
}

/// Seconds of one start: of the slowest of its operations, its bytes, and the way of a product's factors, which come
/// while others are multiplied. While a block multiplies nothing, the others on its SM do, where there are
/// any.
inline double seconds_of(const Kernel& kernel, const Device& device, std::int64_t batch) {
  const double blocks = blocks_of(kernel, device, batch), waves = waves_of(kernel, device, batch);
  // The SM with the most: where there is less than a wave, they are spread out over all.
  const double on_one = waves < 1 ? std::ceil(waves * kernel.resident) : std::ceil(waves) * kernel.resident;
  const double idle = on_one * device.sms / blocks;
  const double speed = kernel.by_warpgroups     ? device.by_warpgroups
                       : kernel.on_tensor_cores ? device.on_tensor_cores
                                                : device.in_fp32;
  const double operations = kernel.operations.at(batch) / speed * idle;
  const Kernel::Attention& attention = kernel.attention;
  const double queries = attention.rows ? kernel.grid[2].count.at(batch) * attention.tiles() * 16 : 0;
  const double factors = (blocks * kernel.tile + queries) * kernel.depth.at(batch) * kernel.factor_bytes;
  double seconds = std::max(operations, factors * idle / (device.cached * device.hertz * device.sms));
  const double present = std::max(1.0, std::min(kernel.resident, waves * kernel.resident));
  AttentionCycles cycles;
  if (attention.rows) cycles = cycles_of(attention, shares_of(kernel, device, batch), present);
  const double each = blocks * idle / (device.hertz * device.sms);  // by so many for a block's cycle
  seconds = std::max(seconds, (seconds + (kernel.alone + cycles.block) * each) / present);
  seconds = std::max(seconds, cycles.issued * each);
  seconds = std::max(seconds, kernel.shared_bytes.at(batch) * idle / (shared_bytes * device.hertz * device.sms));
  // By Little's law: what a block has asked for is there after the memory's latency, and only then the next one begins.
  seconds = std::max(seconds, std::ceil(waves) * kernel.waits.at(batch) * memory_latency / device.hertz);
  // An SM alone gets little more than its share of the memory's speed.
  const double share = std::min(1.0, blocks / device.sms);
  seconds = std::max(seconds, kernel.bytes.at(batch) / (device.bytes * share));
  seconds = std::max(seconds, blocks / (block_starts * device.hertz));
  return seconds + between_starts;
}

/// A line for each kernel, and one for all, on a GPU of that name or architecture. Throws where nothing is known of it.
inline std::string table(const std::string& model, const std::vector<Program>& programs, const std::string& gpu,
                         std::int64_t batch) {
  const Device* device = std::find_if(std::begin(devices), std::end(devices),
                                      [&](const Device& d) { return gpu == d.name || gpu == d.architecture; });
  if (device == std::end(devices))
    throw std::invalid_argument("there are no predictions for " + gpu +
                                ", only for A100 (sm_80), H200 (sm_90a) and H100 (sm_90a)");
  char line[256];
  std::snprintf(line, sizeof line, " on %s (%s), %lld images: predicted\n", device->architecture, device->name,
                static_cast<long long>(batch));
  std::string out = model + line;
  for (const Program& program : programs) {
    std::snprintf(line, sizeof line, "\n%-48s %8s %9s %7s %9s %9s %10s\n", program.name.c_str(), "launches", "blocks",
                  "waves", "GFLOP", "MB", "us");
    out += line;
    double operations = 0, bytes = 0, seconds = 0;
    for (const Kernel& k : program.kernels) {
      if (!k.only_on.empty() && k.only_on != device->architecture) continue;
      const double each = seconds_of(k, *device, batch);
      const std::string shape =
          k.attention.rows ? "blocks for a head: " + std::to_string(shares_of(k, *device, batch)) : k.shape;
      std::snprintf(line, sizeof line, "%-48s %8d %9.0f %7.2f %9.2f %9.2f %10.1f", k.name.c_str(), k.times,
                    blocks_of(k, *device, batch), waves_of(k, *device, batch), k.operations.at(batch) / 1e9,
                    k.bytes.at(batch) / 1e6, each * 1e6);
      out += line;
      if (!shape.empty()) out += "  " + shape;
      if (k.emitted != k.name) out += "  as " + k.emitted;
      out += "\n";
      operations += k.operations.at(batch) * k.times;
      bytes += k.bytes.at(batch) * k.times;
      seconds += each * k.times;
    }
    std::snprintf(line, sizeof line, "%-48s %8s %9s %7s %9.1f %9.1f %10.1f\n", "in all", "", "", "", operations / 1e9,
                  bytes / 1e6, seconds * 1e6);
    out += line;
  }
  return out;
}

}  // namespace tessera::prediction
