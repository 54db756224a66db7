// The part of CUDA's run time that an emitted program calls, on the CPU. What is put into a stream is done as late as
// is legal: where somebody waits for it, or for what another stream waits for. So a missing wait reads what was there
// before, and memory that is changed too early is copied as it is by then.
//
// TESSERA_HOST_GPU_BYTES in the environment is how much memory this GPU has; 0: there is none.
#pragma once

#include <cstddef>
#include <functional>

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorNotReady = 600,
  cudaErrorStreamCaptureUnsupported = 900
};
const char* cudaGetErrorString(cudaError_t error);

struct cudaDeviceProp {
  char name[256];
};
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);

cudaError_t cudaMalloc(void** memory, std::size_t bytes);
cudaError_t cudaFree(void* memory);

typedef struct HostStream* cudaStream_t;
inline constexpr unsigned cudaStreamNonBlocking = 1;
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);

cudaError_t cudaDeviceSynchronize();

typedef struct HostEvent* cudaEvent_t;
inline constexpr unsigned cudaEventDisableTiming = 2, cudaHostRegisterDefault = 0;
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaGetLastError();

/// Memory that is registered is copied from when the copy is done, not when it is asked for.
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void* memory);

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);

typedef struct HostGraph* cudaGraph_t;
typedef struct HostGraphExec* cudaGraphExec_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);

namespace tessera::cuda_host {

/// A kernel's start: into the stream or, where that is the default one, at once.
void put(cudaStream_t stream, std::function<void()> work);
/// Work that answers false until it is done: what waits for another process.
void put_waiting(cudaStream_t stream, std::function<bool()> work);
/// Whether these bytes are the GPU's.
bool on_gpu(const void* first, std::size_t bytes);

}  // namespace tessera::cuda_host
