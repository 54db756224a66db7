// Images of many requests, applied together.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "runtime/arena.hpp"

namespace tessera::runtime::serve {

using Clock = std::chrono::steady_clock;

/// Dynamic batching: one thread applies the model to what waits, as many images at once as there are, up to a batch. It
/// waits for no further ones: an image that comes alone is applied alone. The images of a request may be split over
/// several batches.
class Batcher {
 public:
  /// The forward pass: outputs [count, classes] of images [count, C, H, W].
  using Forward = std::function<void(const float* images, std::int64_t count, float* outputs)>;
  struct Sizes {
    std::int64_t image = 0, row = 0;  ///< numbers in an image, and in a row of outputs
    std::int64_t batch = 1;           ///< images of a forward pass, at most
    std::int64_t queue = 1;           ///< images that wait, at most
    std::int64_t alignment = 64;      ///< bytes, of what the forward pass reads and writes
  };
  struct Counts {
    std::int64_t passes = 0, images = 0;  ///< forward passes, and the images in them
    std::int64_t waiting = 0;             ///< images for the next ones
  };

  /// `forward` is called by one thread, never twice at the same time.
  Batcher(const Sizes& sizes, Forward forward);

  /// The rows of outputs for the images [count, C, H, W], whose number is at least 1; any number of threads may call.
  /// Throws a Refusal: 413 where there are more images than ever fit into the queue, 503 where it is full or where the
  /// deadline passes first, 500 where the forward pass throws, with what it says.
  std::vector<float> apply(std::vector<float> images, Clock::time_point deadline);

  Counts counts() const;

 private:
  /// The images of a call. Shared, since a call that is late leaves while its images are in a forward pass.
  struct Job {
    std::vector<float> images, outputs;
    std::int64_t count = 0, taken = 0, done = 0;  ///< images: in all, taken into a pass, with outputs
    bool failed = false;
    std::string sentence;  ///< of what the forward pass threw
    std::condition_variable answered;
  };
  struct Part {
    std::shared_ptr<Job> job;
    std::int64_t first, count;
  };

  void work(const std::stop_token& stop);
  void take();
  void answer(const char* error);
  void withdraw(const std::shared_ptr<Job>& job);

  const Sizes sizes_;
  const Forward forward_;
  mutable std::mutex mutex_;
  std::condition_variable_any waits_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::int64_t queued_ = 0;  ///< images of `waiting_` that are in no pass yet
  std::int64_t passes_ = 0, images_done_ = 0;
  // Of the thread alone.
  std::vector<Part> parts_;
  Arena images_, outputs_;
  std::jthread thread_;  ///< last: ends, and is joined, before what it uses
};

}  // namespace tessera::runtime::serve
