// Processes send each other bytes through Unix sockets. What a group moves, it moves when the stream comes to it, and
// nothing blocks: a stream that waits for another process is not ready.
#include "tests/cuda/host/nccl/nccl.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

struct HostComm {
  int rank = 0, ranks = 0, listener = -1;
  std::string name;
  std::vector<int> sockets;  ///< by rank; -1: not joined yet
  ncclResult_t state = ncclInProgress;
  bool aborted = false;  ///< what it had begun ends as it is
};

namespace {

/// One message: its length, then its bytes. A receiver that expects another length has found an error.
struct Message {
  int rank;
  std::byte* bytes;
  std::uint64_t length, told = 0;
  std::size_t head = 0, moved = 0;  ///< bytes of the length, and of the rest, that are through
  bool sends;
};
struct Operation {
  Message message;
  HostComm* comm;
  cudaStream_t stream;
};
std::vector<Operation> group;
int depth = 0;

sockaddr_un address(const std::string& name, int rank, socklen_t& length) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  const std::string text = name + "." + std::to_string(rank);  // behind a zero: a name that is no file
  std::memcpy(at.sun_path + 1, text.data(), text.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return at;
}

/// Whoever has the higher rank connects, and says who it is.
void join(HostComm& comm) {
  for (int rank = 0; rank < comm.rank; ++rank) {
    if (comm.sockets[static_cast<std::size_t>(rank)] >= 0) continue;
    const int made = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = 0;
    const sockaddr_un at = address(comm.name, rank, length);
    if (::connect(made, reinterpret_cast<const sockaddr*>(&at), length) != 0 ||
        ::send(made, &comm.rank, sizeof comm.rank, MSG_NOSIGNAL) != sizeof comm.rank)
      ::close(made);
    else
      comm.sockets[static_cast<std::size_t>(rank)] = made;
  }
  for (int made; (made = ::accept4(comm.listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
    int rank = 0;
    if (::recv(made, &rank, sizeof rank, MSG_WAITALL) == sizeof rank && rank > comm.rank && rank < comm.ranks)
      comm.sockets[static_cast<std::size_t>(rank)] = made;
  }
  for (int rank = 0; rank < comm.ranks; ++rank)
    if (rank != comm.rank && comm.sockets[static_cast<std::size_t>(rank)] < 0) return;
  comm.state = ncclSuccess;
}

/// Moves as much as can be moved now. Whether all of it is through.
bool moved(HostComm& comm, Message& message) {
  const int socket = comm.sockets[static_cast<std::size_t>(message.rank)];
  const auto step = [&](void* at, std::size_t left) {
    const ssize_t count =
        message.sends ? ::send(socket, at, left, MSG_DONTWAIT | MSG_NOSIGNAL) : ::recv(socket, at, left, MSG_DONTWAIT);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) comm.state = ncclRemoteError;
    return std::size_t{0};
  };
  if (message.sends) message.told = message.length;
  while (message.head < sizeof message.told) {
    const std::size_t count =
        step(reinterpret_cast<std::byte*>(&message.told) + message.head, sizeof message.told - message.head);
    if (count == 0) return false;
    message.head += count;
  }
  if (message.told != message.length) {
    comm.state = ncclInvalidUsage;
    return false;
  }
  while (message.moved < message.length) {
    const std::size_t count = step(message.bytes + message.moved, message.length - message.moved);
    if (count == 0) return false;
    message.moved += count;
  }
  return true;
}

ncclResult_t add(void* bytes, std::size_t count, int rank, ncclComm_t comm, cudaStream_t stream, bool sends) {
  if (depth == 0 || rank == comm->rank || rank < 0 || rank >= comm->ranks) return ncclInvalidUsage;
  if (!tessera::cuda_host::on_gpu(bytes, count)) return ncclInvalidArgument;
  group.push_back({{rank, static_cast<std::byte*>(bytes), count, 0, 0, 0, sends}, comm, stream});
  return ncclSuccess;
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device random;
  *id = {};
  std::strcpy(id->internal, ("tessera-nccl-" + std::to_string(random()) + "-" + std::to_string(random())).c_str());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  auto made = std::make_unique<HostComm>();
  made->rank = rank;
  made->ranks = ranks;
  made->name = id.internal;
  made->sockets.assign(static_cast<std::size_t>(ranks), -1);
  made->listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  socklen_t length = 0;
  const sockaddr_un at = address(made->name, rank, length);
  if (::bind(made->listener, reinterpret_cast<const sockaddr*>(&at), length) != 0 || ::listen(made->listener, ranks))
    return ncclSystemError;
  *comm = made.release();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (comm->state == ncclInProgress) join(*comm);
  *state = comm->state;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) { return comm->state; }  // sockets keep what is on its way
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return ncclCommAbort(comm); }

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  for (const int socket : comm->sockets)
    if (socket >= 0) ::close(socket);
  ::close(comm->listener);
  comm->aborted = true;  // not deleted: a stream may still come to what it had begun
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0 || group.empty()) return ncclSuccess;
  HostComm* const comm = group.front().comm;
  // By rank and direction: what one process sends another arrives in the order in which it was sent.
  auto queues = std::make_shared<std::vector<std::deque<Message>>>(2 * static_cast<std::size_t>(comm->ranks));
  for (const Operation& each : group)
    (*queues)[2 * static_cast<std::size_t>(each.message.rank) + (each.message.sends ? 1 : 0)].push_back(each.message);
  tessera::cuda_host::put_waiting(group.front().stream, [comm, queues] {
    bool all = true;
    if (comm->aborted) return true;
    for (std::deque<Message>& queue : *queues) {
      while (comm->state == ncclSuccess && !queue.empty() && moved(*comm, queue.front())) queue.pop_front();
      all = all && queue.empty();
    }
    return all;
  });
  group.clear();
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t, int rank, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(const_cast<void*>(from), count, rank, comm, stream, true);
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t, int rank, ncclComm_t comm, cudaStream_t stream) {
  return add(to, count, rank, comm, stream, false);
}
