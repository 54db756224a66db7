#include "tests/cuda/host/cuda_runtime.hpp"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/host/device_array.hpp"

using Work = std::deque<std::function<bool()>>;  // each answers whether it is done

struct HostStream {
  Work waiting;
  bool captures = false;
  Work captured;
};
struct HostGraph {
  Work work;
};
struct HostGraphExec {
  Work work;
};
struct HostEvent {
  cudaStream_t stream = nullptr;  ///< that has recorded it
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);
};

namespace {

using tessera::cuda_host::on_gpu;

using Memory = tessera::cuda_host::DeviceArray<std::byte>;

/// By where they begin.
std::map<const void*, std::unique_ptr<Memory>>& memories() {
  static std::map<const void*, std::unique_ptr<Memory>> all;
  return all;
}
std::size_t capacity() {
  const char* bytes = std::getenv("TESSERA_HOST_GPU_BYTES");
  return bytes ? std::stoull(bytes) : std::size_t{1} << 40;
}
std::size_t taken() {
  std::size_t sum = 0;
  for (auto& [first, memory] : memories()) sum += memory->span().size();
  return sum;
}
std::set<HostStream*>& streams() {
  static std::set<HostStream*> all;
  return all;
}
void run(const Work& work) {
  for (const std::function<bool()>& each : work)
    while (!each()) continue;
}
/// Whether the first is done: else it is asked again.
bool run_first(HostStream& stream) {
  std::function<bool()> first = std::move(stream.waiting.front());
  stream.waiting.pop_front();
  const bool done = first();
  if (!done) stream.waiting.push_front(std::move(first));
  return done;
}
/// Memory of the CPU by where it begins: its bytes.
std::map<const std::byte*, std::size_t>& registered() {
  static std::map<const std::byte*, std::size_t> all;
  return all;
}
bool is_registered(const std::byte* first, std::size_t bytes) {
  auto after = registered().upper_bound(first);
  if (after == registered().begin()) return false;
  const auto& [start, size] = *std::prev(after);
  return static_cast<std::size_t>(first - start) + bytes <= size;
}

}  // namespace

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
  }
  return "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = capacity() > 0;
  return *count ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidValue; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "this CPU");
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (taken() + bytes > capacity()) return cudaErrorMemoryAllocation;
  auto array = std::make_unique<Memory>(bytes);
  *memory = array->data();
  memories().emplace(*memory, std::move(array));
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (!memory) return cudaSuccess;
  for (HostStream* const stream : streams())  // CUDA waits for what may use the memory
    while (!stream->captures && !stream->waiting.empty()) run_first(*stream);
  return memories().erase(memory) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  streams().insert(*stream = new HostStream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  streams().erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->captures) return cudaErrorStreamCaptureUnsupported;
  while (!stream->waiting.empty()) run_first(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  while (!stream->waiting.empty())
    if (!run_first(*stream)) return cudaErrorNotReady;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new HostEvent;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream->captures) return cudaErrorStreamCaptureUnsupported;
  *event = {stream, std::make_shared<bool>(false)};
  tessera::cuda_host::put(stream, [reached = event->reached] { *reached = true; });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (stream->captures) return cudaErrorStreamCaptureUnsupported;
  tessera::cuda_host::put(stream, [other = event->stream, reached = event->reached] {
    while (!*reached) run_first(*other);
  });
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  registered().emplace(static_cast<const std::byte*>(memory), bytes);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  return registered().erase(static_cast<const std::byte*>(memory)) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }  // the default stream's work is done when it is put there

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  if (!on_gpu(memory, bytes)) return cudaErrorInvalidValue;
  tessera::cuda_host::put(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (stream && stream->captures) return cudaErrorStreamCaptureUnsupported;
  const bool in = kind == cudaMemcpyHostToDevice;
  if (bytes > 0 && (on_gpu(to, bytes) != in || on_gpu(from, bytes) == in)) return cudaErrorInvalidValue;
  if (!in) {
    tessera::cuda_host::put(stream, [=] { std::memcpy(to, from, bytes); });
    return cudaSuccess;
  }
  const auto* first = static_cast<const std::byte*>(from);
  if (is_registered(first, bytes)) {
    tessera::cuda_host::put(stream, [=] { std::memcpy(to, from, bytes); });
    return cudaSuccess;
  }
  // What is copied is what stands there now.
  tessera::cuda_host::put(
      stream, [to, kept = std::vector<std::byte>(first, first + bytes)] { std::memcpy(to, kept.data(), kept.size()); });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->captures = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  stream->captures = false;
  *graph = new HostGraph{std::exchange(stream->captured, {})};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = new HostGraphExec{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  tessera::cuda_host::put(stream, [graph] { run(graph->work); });
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}

namespace tessera::cuda_host {

void put(cudaStream_t stream, std::function<void()> work) {
  put_waiting(stream, [work = std::move(work)] {
    work();
    return true;
  });
}

void put_waiting(cudaStream_t stream, std::function<bool()> work) {
  if (!stream) return run({std::move(work)});
  (stream->captures ? stream->captured : stream->waiting).push_back(std::move(work));
}

bool on_gpu(const void* first, std::size_t bytes) {
  auto after = memories().upper_bound(first);
  if (after == memories().begin()) return false;
  auto& [start, memory] = *std::prev(after);
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(first) - static_cast<const std::byte*>(start));
  return offset + bytes <= memory->span().size();
}

}  // namespace tessera::cuda_host
