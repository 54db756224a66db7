#include "runtime/ranks_nccl.hpp"

#include <nccl.h>  // which includes CUDA's run time

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tessera::runtime {
namespace {

static_assert(sizeof(ncclUniqueId) == GpuRanks::id_bytes);

ncclComm_t communicator = nullptr;

void demand(ncclResult_t result) {
  // A communicator that does not block says so of what it has begun; `done` asks how that went.
  if (result != ncclSuccess && result != ncclInProgress)
    throw std::runtime_error(std::string("NCCL cannot connect the GPUs of the ranks, of which each needs its own: ") +
                             ncclGetErrorString(result));
}

void choose(int number) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) cudaSetDevice(number % count);
}

void make_id(void* id) {
  ncclUniqueId made;
  demand(ncclGetUniqueId(&made));
  std::memcpy(id, &made, sizeof made);
}

void join(const void* id, int rank, int count) {
  ncclUniqueId given;
  std::memcpy(&given, id, sizeof given);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;  // waiting is the runtime's, which has a limit
  demand(ncclCommInitRankConfig(&communicator, count, given, rank, &config));
}

void leave() {
  if (communicator) ncclCommAbort(communicator);  // at which nothing is on its way any more
  communicator = nullptr;
}

void begin() { demand(ncclGroupStart()); }
void send(const void* from, std::int64_t bytes, int rank, void* stream) {
  demand(
      ncclSend(from, static_cast<std::size_t>(bytes), ncclInt8, rank, communicator, static_cast<cudaStream_t>(stream)));
}
void receive(void* to, std::int64_t bytes, int rank, void* stream) {
  demand(
      ncclRecv(to, static_cast<std::size_t>(bytes), ncclInt8, rank, communicator, static_cast<cudaStream_t>(stream)));
}
void end() { demand(ncclGroupEnd()); }

bool done(void* stream) {
  ncclResult_t state = ncclSuccess;
  demand(ncclCommGetAsyncError(communicator, &state));
  demand(state);
  if (state == ncclInProgress) return false;
  if (!stream) return true;
  const cudaError_t work = cudaStreamQuery(static_cast<cudaStream_t>(stream));
  if (work != cudaSuccess && work != cudaErrorNotReady)
    throw std::runtime_error(std::string("the GPU failed: ") + cudaGetErrorString(work));
  return work == cudaSuccess;
}

// Bytes of the CPU's memory, by way of the GPUs'. What two ranks exchange is cut into pieces; each round moves the next
// piece of each pair and direction, all in one group, so that no rank waits for one that waits for it.
constexpr std::int64_t piece = 1 << 20;
struct Transfer {
  const std::byte* from;  ///< null: it is received
  std::byte* to;
  std::int64_t bytes;
};
std::map<std::pair<int, bool>, std::deque<Transfer>> transfers;  ///< by rank, and whether they are sent
struct Round {
  struct Piece {
    std::deque<Transfer>* of;
    std::int64_t at, bytes;  ///< in `memory`
  };
  std::vector<Piece> pieces;
  std::byte* memory = nullptr;
  std::int64_t room = 0;
  cudaStream_t stream = nullptr;
};
Round round_;

void demand_cuda(cudaError_t result) {
  if (result != cudaSuccess)
    throw std::runtime_error(std::string("the GPU cannot pass bytes on between ranks: ") + cudaGetErrorString(result));
}

void send_bytes(const void* from, std::int64_t bytes, int rank) {
  transfers[{rank, true}].push_back({static_cast<const std::byte*>(from), nullptr, bytes});
}
void receive_bytes(void* to, std::int64_t bytes, int rank) {
  transfers[{rank, false}].push_back({nullptr, static_cast<std::byte*>(to), bytes});
}

void begin_round() {
  std::int64_t room = 0;
  for (auto& [peer, queue] : transfers) {
    if (queue.empty()) continue;
    round_.pieces.push_back({&queue, room, std::min(piece, queue.front().bytes)});
    room += (round_.pieces.back().bytes + 255) / 256 * 256;
  }
  if (!round_.stream) demand_cuda(cudaStreamCreateWithFlags(&round_.stream, cudaStreamNonBlocking));
  if (room > round_.room) {
    if (round_.memory) demand_cuda(cudaFree(round_.memory));
    round_.memory = nullptr;
    round_.room = 0;
    void* memory = nullptr;
    demand_cuda(cudaMalloc(&memory, static_cast<std::size_t>(room)));
    round_.memory = static_cast<std::byte*>(memory);
    round_.room = room;
  }
  for (const Round::Piece& each : round_.pieces)
    if (const std::byte* const from = each.of->front().from)
      demand_cuda(cudaMemcpyAsync(round_.memory + each.at, from, static_cast<std::size_t>(each.bytes),
                                  cudaMemcpyHostToDevice, round_.stream));
  begin();
  auto each = round_.pieces.begin();
  for (const auto& [peer, queue] : transfers) {
    if (queue.empty()) continue;
    if (peer.second)
      send(round_.memory + each->at, each->bytes, peer.first, round_.stream);
    else
      receive(round_.memory + each->at, each->bytes, peer.first, round_.stream);
    ++each;
  }
  end();
}

void end_round() {
  for (const Round::Piece& each : round_.pieces) {
    Transfer& transfer = each.of->front();
    if (transfer.from) {
      transfer.from += each.bytes;
    } else {
      demand_cuda(cudaMemcpyAsync(transfer.to, round_.memory + each.at, static_cast<std::size_t>(each.bytes),
                                  cudaMemcpyDeviceToHost, round_.stream));
      transfer.to += each.bytes;
    }
    transfer.bytes -= each.bytes;
    if (transfer.bytes == 0) each.of->pop_front();
  }
  demand_cuda(cudaStreamSynchronize(round_.stream));
  round_.pieces.clear();
}

int pending() {
  constexpr int somebody = -2;
  if (!round_.pieces.empty()) {
    if (!done(round_.stream)) return somebody;
    end_round();
  }
  if (std::ranges::all_of(transfers, [](const auto& of_peer) { return of_peer.second.empty(); })) return -1;
  begin_round();
  return somebody;
}

/// Nothing else tells when the last bytes are through.
void close() {
  ncclResult_t state = ncclCommFinalize(communicator);
  for (int i = 0; state == ncclInProgress && i < 10'000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (ncclCommGetAsyncError(communicator, &state) != ncclSuccess) break;
  }
  if (state == ncclSuccess && ncclCommDestroy(communicator) == ncclSuccess) communicator = nullptr;
  leave();
  if (round_.memory) cudaFree(round_.memory);
  if (round_.stream) cudaStreamDestroy(round_.stream);
  round_ = {};
}

const Ranks ranks_by_gpus{.close = close, .send = send_bytes, .receive = receive_bytes, .pending = pending};

}  // namespace

const GpuRanks ranks_over_nccl{.choose = choose,
                               .make_id = make_id,
                               .join = join,
                               .leave = leave,
                               .begin = begin,
                               .send = send,
                               .receive = receive,
                               .end = end,
                               .done = done,
                               .ranks = &ranks_by_gpus};

}  // namespace tessera::runtime
