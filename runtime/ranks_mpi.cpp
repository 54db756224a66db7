#include "runtime/ranks_mpi.hpp"

// C alone: the bindings for C++ are of a standard that MPI has given up.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::runtime {
namespace {

struct Begun {
  std::vector<MPI_Request> requests;
  std::vector<int> ranks;  ///< whom each is for
};
Begun begun;

void demand(int code) {
  if (code == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, words, &length);
  throw std::runtime_error("the ranks cannot reach each other: " +
                           std::string(words, static_cast<std::size_t>(length)));
}

void open(int& rank, int& count) {
  int threads = 0;
  demand(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &threads));
  demand(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  demand(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  demand(MPI_Comm_size(MPI_COMM_WORLD, &count));
}

void close() { MPI_Finalize(); }

/// Begins it by pieces that MPI's int can count.
template <class Bytes, class Begin>
void by_pieces(Bytes* bytes, std::int64_t length, int rank, Begin begin) {
  constexpr std::int64_t largest = 1 << 30;
  for (std::int64_t at = 0; at < length; at += largest) {
    begun.ranks.push_back(rank);
    begun.requests.push_back(MPI_REQUEST_NULL);
    demand(begin(bytes + at, static_cast<int>(std::min(largest, length - at)), &begun.requests.back()));
  }
}

void send(const void* from, std::int64_t bytes, int rank) {
  by_pieces(static_cast<const std::byte*>(from), bytes, rank,
            [&](const std::byte* at, int count, MPI_Request* request) {
              return MPI_Isend(at, count, MPI_BYTE, rank, 0, MPI_COMM_WORLD, request);
            });
}

void receive(void* to, std::int64_t bytes, int rank) {
  by_pieces(static_cast<std::byte*>(to), bytes, rank, [&](std::byte* at, int count, MPI_Request* request) {
    return MPI_Irecv(at, count, MPI_BYTE, rank, 0, MPI_COMM_WORLD, request);
  });
}

int pending() {
  int done = 0;
  demand(MPI_Testall(static_cast<int>(begun.requests.size()), begun.requests.data(), &done, MPI_STATUSES_IGNORE));
  if (!done) {
    for (std::size_t i = 0; i < begun.requests.size(); ++i) {
      int one = 0;
      demand(MPI_Test(&begun.requests[i], &one, MPI_STATUS_IGNORE));
      if (!one) return begun.ranks[i];
    }
  }
  begun = {};
  return -1;
}

}  // namespace

const Ranks ranks_over_mpi{.open = open, .close = close, .send = send, .receive = receive, .pending = pending};

}  // namespace tessera::runtime
