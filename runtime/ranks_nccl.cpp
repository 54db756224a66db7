#include "runtime/ranks_nccl.hpp"

#include <nccl.h>  // which includes CUDA's run time

#include <cstring>
#include <stdexcept>
#include <string>

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

}  // namespace

const GpuRanks ranks_over_nccl{.choose = choose,
                               .make_id = make_id,
                               .join = join,
                               .leave = leave,
                               .begin = begin,
                               .send = send,
                               .receive = receive,
                               .end = end,
                               .done = done};

}  // namespace tessera::runtime
