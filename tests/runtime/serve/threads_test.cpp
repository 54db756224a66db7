// Many threads of one batcher: calls of any size, calls that are late, that find the queue full and whose pass fails,
// and the batcher's end. Run with ThreadSanitizer by check_threads, without GoogleTest.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/serve/batcher.hpp"
#include "runtime/serve/refusal.hpp"

using namespace tessera::runtime::serve;

int main() {
  constexpr std::int64_t image = 5, row = 2;
  std::atomic<std::int64_t> answered = 0, late = 0, full = 0, failed = 0, wrong = 0;
  for (int round = 0; round < 3; ++round) {
    std::int64_t passes = 0;  // of the batcher's thread alone
    std::optional<Batcher> batcher;
    batcher.emplace(Batcher::Sizes{image, row, 4, 12, 64},
                    [&](const float* images, std::int64_t count, float* outputs) {
                      for (std::int64_t i = 0; i < count; ++i) {
                        outputs[row * i] = images[image * i];
                        outputs[row * i + 1] = 2 * images[image * i + 4];
                      }
                      if (++passes % 7 == 0) throw std::runtime_error("a pass that fails");
                      if (passes % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
                    });
    std::vector<std::thread> threads;
    for (std::int64_t t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (std::int64_t i = 0; i < 300; ++i) {
          const std::int64_t count = 1 + (i + t) % 6;
          std::vector<float> images(static_cast<std::size_t>(image * count), static_cast<float>(1000 * t + i));
          try {
            const auto time = std::chrono::microseconds(i % 3 == 0 ? 100 : 10'000'000);
            const std::vector<float> rows = batcher->apply(std::move(images), Clock::now() + time);
            for (std::int64_t k = 0; k < count; ++k)
              wrong += rows[static_cast<std::size_t>(row * k)] != static_cast<float>(1000 * t + i) ||
                       rows[static_cast<std::size_t>(row * k + 1)] != static_cast<float>(2 * (1000 * t + i));
            ++answered;
          } catch (const Refusal& refused) {
            const std::string said = refused.what();
            ++(refused.status() == 500 ? failed : said.find("full") != std::string::npos ? full : late);
          }
          wrong += batcher->counts().waiting > 12;
        }
      });
    for (std::thread& thread : threads) thread.join();
    wrong += batcher->counts().waiting != 0;
  }
  std::cout << answered << " answered, " << failed << " failed, " << late << " late, " << full
            << " found the queue full, " << wrong << " wrong\n";
  return wrong != 0 || answered == 0 || failed == 0 || late == 0 || full == 0;
}
