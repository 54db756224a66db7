#include "runtime/serve/batcher.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "runtime/serve/refusal.hpp"

namespace tessera::runtime::serve {

Batcher::Batcher(const Sizes& sizes, Forward forward)
    : sizes_(sizes),
      forward_(std::move(forward)),
      images_(Arena::of_floats(size_product({sizes.batch, sizes.image}), sizes.alignment)),
      outputs_(Arena::of_floats(size_product({sizes.batch, sizes.row}), sizes.alignment)) {
  // The thread allocates nothing between taking images and answering: where memory is short, callers still hear of it.
  parts_.reserve(static_cast<std::size_t>(sizes.batch));
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

std::vector<float> Batcher::apply(std::vector<float> images, Clock::time_point deadline) {
  const auto job = std::make_shared<Job>();
  job->count = static_cast<std::int64_t>(images.size()) / sizes_.image;
  job->images = std::move(images);
  job->outputs.resize(static_cast<std::size_t>(size_product({job->count, sizes_.row})));
  if (job->count > sizes_.queue)
    refuse(413, "a request of ", job->count, " images is larger than the queue, which holds ", sizes_.queue);
  std::unique_lock lock(mutex_);
  if (queued_ + job->count > sizes_.queue)
    refuse(503, "the queue is full: ", queued_, " images wait for the model, ", sizes_.queue, " can");
  waiting_.push_back(job);
  queued_ += job->count;
  waits_.notify_one();
  const bool in_time = job->answered.wait_until(lock, deadline, [&] { return job->failed || job->done == job->count; });
  if (!in_time) {
    withdraw(job);
    refuse(503, "the model was too busy to answer in time");
  }
  // What a failed pass left in the outputs is nobody's answer.
  if (job->failed) refuse(500, job->sentence.empty() ? "there is not enough memory" : job->sentence);
  return std::move(job->outputs);
}

Batcher::Counts Batcher::counts() const {
  const std::lock_guard lock(mutex_);
  return {passes_, images_done_, queued_};
}

void Batcher::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (waits_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
    take();
    lock.unlock();
    std::int64_t images = 0;
    for (const auto& [job, first, count] : parts_) {
      std::copy_n(job->images.data() + first * sizes_.image, count * sizes_.image,
                  images_.floats() + images * sizes_.image);
      images += count;
    }
    // Its sentence is kept in the exception, which must outlive the handler for that.
    std::exception_ptr thrown;
    const char* error = nullptr;
    try {
      forward_(images_.floats(), images, outputs_.floats());
    } catch (const std::exception& wrong) {
      thrown = std::current_exception();
      error = wrong.what();
    } catch (...) {
      error = "the forward pass threw what is no std::exception";
    }
    lock.lock();
    passes_ += 1;
    images_done_ += images;
    answer(error);
    parts_.clear();
  }
}

/// The images that have waited longest, up to a batch of them.
void Batcher::take() {
  for (std::int64_t room = sizes_.batch; room > 0 && !waiting_.empty();) {
    const std::shared_ptr<Job>& job = waiting_.front();
    const std::int64_t count = std::min(room, job->count - job->taken);
    parts_.push_back({job, job->taken, count});
    job->taken += count;
    queued_ -= count;
    room -= count;
    if (job->taken == job->count) waiting_.pop_front();
  }
}

/// Gives the rows of the pass, or its error, to whom they belong.
void Batcher::answer(const char* error) {
  const float* from = outputs_.floats();
  for (const auto& [job, first, count] : parts_) {
    if (error) {
      job->failed = true;
      try {
        job->sentence = error;
      } catch (const std::bad_alloc&) {  // then there is no sentence
      }
      withdraw(job);  // its other images have no use
    } else {
      std::copy_n(from, count * sizes_.row, job->outputs.data() + first * sizes_.row);
      job->done += count;
    }
    from += count * sizes_.row;
    if (job->failed || job->done == job->count) job->answered.notify_one();
  }
}

/// Takes the images that are in no pass yet out of the queue.
void Batcher::withdraw(const std::shared_ptr<Job>& job) {
  if (std::erase(waiting_, job) > 0) queued_ -= job->count - job->taken;
}

}  // namespace tessera::runtime::serve
