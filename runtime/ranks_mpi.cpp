#include "runtime/ranks_mpi.hpp"

// C alone: the bindings for C++ are of a standard that MPI has given up.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <list>
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

constexpr int tag_of_bytes = 0, tag_of_notices = 1;

struct Told {
  Notice notice;
  MPI_Request request;
};
std::list<Told> told;  ///< which MPI may still read

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
              return MPI_Isend(at, count, MPI_BYTE, rank, tag_of_bytes, MPI_COMM_WORLD, request);
            });
}

void receive(void* to, std::int64_t bytes, int rank) {
  by_pieces(static_cast<std::byte*>(to), bytes, rank, [&](std::byte* at, int count, MPI_Request* request) {
    return MPI_Irecv(at, count, MPI_BYTE, rank, tag_of_bytes, MPI_COMM_WORLD, request);
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

void tell(const Notice& notice, int rank) {
  told.remove_if([](Told& one) {
    int done = 0;
    return MPI_Test(&one.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done;
  });
  Told& one = told.emplace_back(notice, MPI_REQUEST_NULL);
  MPI_Isend(&one.notice, sizeof one.notice, MPI_BYTE, rank, tag_of_notices, MPI_COMM_WORLD, &one.request);
}

bool hear(Notice& notice, int& rank) {
  int arrived = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, tag_of_notices, MPI_COMM_WORLD, &arrived, &status) != MPI_SUCCESS || !arrived)
    return false;
  rank = status.MPI_SOURCE;
  return MPI_Recv(&notice, sizeof notice, MPI_BYTE, rank, tag_of_notices, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
         MPI_SUCCESS;
}

}  // namespace

const Ranks ranks_over_mpi{
    .open = open, .close = close, .send = send, .receive = receive, .pending = pending, .tell = tell, .hear = hear};

}  // namespace tessera::runtime
