// A model as paths of an HTTP server.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/model.hpp"
#include "runtime/serve/batcher.hpp"
#include "runtime/serve/server.hpp"

namespace tessera::runtime::serve {

/// As many at the same time as there are places. (std::counting_semaphore of GCC 12's library can sleep for ever: GCC
/// bug 104928.)
class Places {
 public:
  explicit Places(std::int64_t count) : free_(count) {}
  /// False where none is free by then.
  bool take(Clock::time_point deadline);
  void give_back();

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::int64_t free_;
};

struct ServiceLimits {
  std::int64_t batch = 32;                      ///< images of a forward pass, at most
  std::int64_t queue = 256;                     ///< images that wait for one, at most
  std::int64_t pixels = std::int64_t{1} << 24;  ///< of a picture
};

/// The model with what is known of its use. The Open Inference Protocol at /v2, and beside it a page at / and POST
/// /classify, which takes the bytes of a picture file. `model` must outlive this.
class Service {
 public:
  /// `classes`: names, or none. `forward` is called once here, so that what is wrong with it is thrown before anybody
  /// is served, and by one thread afterwards.
  Service(const Model& model, const Preprocessing& input, std::vector<std::string> classes, const ServiceLimits& limits,
          Batcher::Forward forward);

  /// This must outlive them.
  std::vector<Route> routes();
  Batcher::Counts counts() const { return batcher_.counts(); }

 private:
  Answer classify(const Question& question);
  Answer infer(const Question& question);

  const Model& model_;
  const Preprocessing input_;
  const std::vector<std::string> classes_;
  const ServiceLimits limits_;
  const std::string page_;
  /// Decoding a picture, or JSON, takes many times the memory of its bytes: as many go on at the same time as there are
  /// processors.
  Places decoders_;
  Batcher batcher_;
};

}  // namespace tessera::runtime::serve
