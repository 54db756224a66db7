// Images of many requests in one forward pass.
#include "runtime/serve/batcher.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/serve/refusal.hpp"

namespace tessera::runtime::serve {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t image = 3, row = 2;

Clock::time_point in(milliseconds time) { return Clock::now() + time; }
Clock::time_point much_later() { return in(milliseconds(60'000)); }

/// Rows that tell which image they are of: its sum, and its first number times ten.
void sums(const float* images, std::int64_t count, float* outputs) {
  for (std::int64_t i = 0; i < count; ++i) {
    outputs[row * i] = images[image * i] + images[image * i + 1] + images[image * i + 2];
    outputs[row * i + 1] = 10 * images[image * i];
  }
}

/// Images [count, 3], the first number of which is first, first + 1, ...
std::vector<float> images_from(std::int64_t first, std::int64_t count) {
  std::vector<float> images;
  for (std::int64_t i = first; i < first + count; ++i)
    images.insert(images.end(), {static_cast<float>(i), 0.5f, 0.25f});
  return images;
}

std::vector<float> rows_from(std::int64_t first, std::int64_t count) {
  std::vector<float> rows(static_cast<std::size_t>(row * count));
  sums(images_from(first, count).data(), count, rows.data());
  return rows;
}

/// Status and sentence of the Refusal that `action` throws.
template <class Action>
std::pair<int, std::string> refusal(const Action& action) {
  try {
    action();
  } catch (const Refusal& refused) {
    return {refused.status(), refused.what()};
  }
  return {0, ""};
}

/// A forward pass that waits until it is let go, and tells when one has begun.
class Gate {
 public:
  Batcher::Forward forward() {
    return [this](const float* images, std::int64_t count, float* outputs) {
      sizes.push_back(count);
      if (closed.exchange(false)) {
        begun.count_down();
        open.wait();
      }
      sums(images, count, outputs);
    };
  }
  std::atomic<bool> closed{true};
  std::latch begun{1}, open{1};
  std::vector<std::int64_t> sizes;  ///< of the passes
};

/// Calls that wait, each in a thread of its own.
class Calls {
 public:
  explicit Calls(Batcher& batcher) : batcher_(batcher) {}
  std::future<std::vector<float>>& add(std::int64_t first, std::int64_t count,
                                       Clock::time_point deadline = much_later()) {
    calls_.push_back(std::async(std::launch::async, [this, first, count, deadline] {
      return batcher_.apply(images_from(first, count), deadline);
    }));
    return calls_.back();
  }

 private:
  Batcher& batcher_;
  std::deque<std::future<std::vector<float>>> calls_;
};

void until_waiting(const Batcher& batcher, std::int64_t images) {
  while (batcher.counts().waiting != images) std::this_thread::sleep_for(milliseconds(1));
}

TEST(Batcher, GivesEachCallTheRowsOfItsImages) {
  Batcher batcher({image, row, 4, 1000, 64}, sums);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::int64_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 200; ++i) {
        const std::int64_t first = 1000 * t + 7 * i, count = 1 + (i + t) % 9;
        wrong += batcher.apply(images_from(first, count), much_later()) != rows_from(first, count);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(batcher.counts().images, 4 * batcher.counts().passes);
}

TEST(Batcher, AnImageThatComesAloneIsAppliedAlone) {
  Gate gate;
  gate.closed = false;
  Batcher batcher({image, row, 8, 100, 64}, gate.forward());
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(batcher.apply(images_from(i, 1), much_later()), rows_from(i, 1));
  EXPECT_EQ(gate.sizes, (std::vector<std::int64_t>{1, 1, 1}));
}

TEST(Batcher, WhatWaitsIsAppliedTogetherUpToABatch) {
  Gate gate;
  Batcher batcher({image, row, 4, 20, 64}, gate.forward());
  Calls calls(batcher);
  auto& first = calls.add(0, 1);
  gate.begun.wait();
  // 1 + 2 + 7 images wait behind it: passes of 4, 4 and 2, over whose ends the 7 are split.
  auto& second = calls.add(10, 1);
  until_waiting(batcher, 1);
  auto& third = calls.add(20, 2);
  until_waiting(batcher, 3);
  auto& fourth = calls.add(30, 7);
  until_waiting(batcher, 10);
  gate.open.count_down();
  EXPECT_EQ(first.get(), rows_from(0, 1));
  EXPECT_EQ(second.get(), rows_from(10, 1));
  EXPECT_EQ(third.get(), rows_from(20, 2));
  EXPECT_EQ(fourth.get(), rows_from(30, 7));
  EXPECT_EQ(gate.sizes, (std::vector<std::int64_t>{1, 4, 4, 2}));
}

TEST(Batcher, AFullQueueAndARequestThatNeverFitsAreToldApart) {
  Gate gate;
  Batcher batcher({image, row, 2, 5, 64}, gate.forward());
  Calls calls(batcher);
  EXPECT_EQ(refusal([&] { batcher.apply(images_from(0, 6), much_later()); }),
            std::pair(413, std::string("a request of 6 images is larger than the queue, which holds 5")));
  auto& first = calls.add(0, 1);
  gate.begun.wait();
  auto& second = calls.add(1, 4);
  until_waiting(batcher, 4);
  EXPECT_EQ(refusal([&] { batcher.apply(images_from(0, 2), much_later()); }),
            std::pair(503, std::string("the queue is full: 4 images wait for the model, 5 can")));
  auto& third = calls.add(9, 1);  // which has just enough room
  gate.open.count_down();
  EXPECT_EQ(first.get(), rows_from(0, 1));
  EXPECT_EQ(second.get(), rows_from(1, 4));
  EXPECT_EQ(third.get(), rows_from(9, 1));
}

TEST(Batcher, ACallThatIsLateLeavesAndMakesRoom) {
  Gate gate;
  Batcher batcher({image, row, 2, 3, 64}, gate.forward());
  Calls calls(batcher);
  // One is in the forward pass when its time is over, one waits for the next.
  auto& passing = calls.add(0, 1, in(milliseconds(150)));
  gate.begun.wait();
  const auto late = std::pair(503, std::string("the model was too busy to answer in time"));
  EXPECT_EQ(refusal([&] { batcher.apply(images_from(1, 3), in(milliseconds(50))); }), late);
  EXPECT_EQ(refusal([&] { passing.get(); }), late);
  auto& next = calls.add(5, 3);
  until_waiting(batcher, 3);
  gate.open.count_down();
  EXPECT_EQ(next.get(), rows_from(5, 3));
  EXPECT_EQ(gate.sizes, (std::vector<std::int64_t>{1, 2, 1}));
}

TEST(Batcher, AFailedPassIsAnErrorOfItsCallsAndNotAnAnswer) {
  std::atomic<int> passes = 0;
  Batcher batcher({image, row, 2, 10, 64}, [&](const float* images, std::int64_t count, float* outputs) {
    sums(images, count, outputs);  // outputs that look right
    if (++passes == 1) throw std::runtime_error("the model cannot go on");
    if (passes == 2) throw 7;
  });
  // Of five images the first two fail: the other three are not tried.
  EXPECT_EQ(refusal([&] { batcher.apply(images_from(0, 5), much_later()); }),
            std::pair(500, std::string("the model cannot go on")));
  EXPECT_EQ(refusal([&] { batcher.apply(images_from(0, 1), much_later()); }),
            std::pair(500, std::string("the forward pass threw what is no std::exception")));
  EXPECT_EQ(batcher.apply(images_from(3, 5), much_later()), rows_from(3, 5));
  EXPECT_EQ(passes, 5);
}

}  // namespace
}  // namespace tessera::runtime::serve
