// What the runtime asks of CUDA (tessera::runtime::Cuda).

/// Throws what CUDA says, behind what was wanted of it.
void demand(cudaError_t error, const char* wanted) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(wanted) + ": " + cudaGetErrorString(error));
}
cudaStream_t of(void* stream) { return static_cast<cudaStream_t>(stream); }
std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

void* open_gpu(std::string& name) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0)
    throw std::runtime_error(std::string("there is no GPU here that CUDA can use (") +
                             cudaGetErrorString(error != cudaSuccess ? error : cudaErrorNoDevice) + ")");
  cudaDeviceProp properties;
  demand(cudaGetDeviceProperties(&properties, 0), "the GPU does not tell what it is");
  name = properties.name;
  cudaStream_t stream = nullptr;
  demand(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "the GPU cannot be used");
  return stream;
}
void close_gpu(void* stream) { cudaStreamDestroy(of(stream)); }
void* open_copies() {
  cudaStream_t stream = nullptr;
  demand(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "the GPU cannot be used");
  return stream;
}
void wait_for(void* stream, void* other) {
  cudaEvent_t event = nullptr;
  demand(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "the GPU has no events");
  cudaError_t error = cudaEventRecord(event, of(other));
  if (error == cudaSuccess) error = cudaStreamWaitEvent(of(stream), event, 0);
  cudaEventDestroy(event);  // CUDA keeps it until it was waited for
  demand(error, "a stream cannot wait for another");
}
bool pin(void* memory, std::int64_t bytes) {
  if (cudaHostRegister(memory, size(bytes), cudaHostRegisterDefault) == cudaSuccess) return true;
  cudaGetLastError();  // which is nobody else's
  return false;
}
void unpin(void* memory) { cudaHostUnregister(memory); }
void* allocate(std::int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, size(bytes));
  if (error != cudaSuccess)
    throw std::runtime_error("the GPU has no room for " + std::to_string(bytes) + " bytes more (" +
                             cudaGetErrorString(error) + "); a smaller --batch may help");
  return memory;
}
void release(void* memory) { cudaFree(memory); }
void clear(void* memory, std::int64_t bytes, void* stream) {
  demand(cudaMemsetAsync(memory, 0, size(bytes), of(stream)), "the GPU's memory cannot be cleared");
}
void copy_in(void* to, const void* from, std::int64_t bytes, void* stream) {
  demand(cudaMemcpyAsync(to, from, size(bytes), cudaMemcpyHostToDevice, of(stream)),
         "nothing can be copied to the GPU");
}
void copy_out(void* to, const void* from, std::int64_t bytes, void* stream) {
  demand(cudaMemcpyAsync(to, from, size(bytes), cudaMemcpyDeviceToHost, of(stream)),
         "nothing can be copied from the GPU");
}
void wait(void* stream) { demand(cudaStreamSynchronize(of(stream)), "the GPU failed"); }
void begin_graph(void* stream) {
  demand(cudaStreamBeginCapture(of(stream), cudaStreamCaptureModeThreadLocal), "a CUDA graph cannot be begun");
}
void* end_graph(void* stream) {
  cudaGraph_t graph = nullptr;
  demand(cudaStreamEndCapture(of(stream), &graph), "a CUDA graph cannot be made");
  cudaGraphExec_t made = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  demand(error, "a CUDA graph cannot be made");
  return made;
}
void run_graph(void* graph, void* stream) {
  demand(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), of(stream)), "a CUDA graph cannot be run");
}
void release_graph(void* graph) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }
