// A model with its weights for other programs: what an emitted NAME_model.cpp, the C library, is made of.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/error.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// `count` pictures of one size, one behind the other: rows of `width` pixels of red, green and blue, each row `stride`
/// bytes behind the one before.
struct RgbPictures {
  const std::uint8_t* rgb = nullptr;
  std::int64_t count = 0, width = 0, height = 0, stride = 0;
};

/// A model with its parameters, which any number of threads apply to pictures at the same time.
class Network {
 public:
  /// `model` must outlive this.
  Network(const Model& model, Arena parameters);

  /// outputs [count, model.classes] for the pictures, prepared as `input` says. Throws an Error for pictures that are
  /// none.
  void forward(const RgbPictures& pictures, const Preprocessing& input, float* outputs) const;

  /// features [count, model.embedding.features], likewise, of a model that embeds.
  void embed(const RgbPictures& pictures, const Preprocessing& input, float* features) const;

 private:
  /// Memory of one call.
  struct Workspace {
    std::int64_t images;  ///< that it has room for
    Arena input, tokens, pooling, scratch;
  };
  /// run(parameters, workspace, first, images) for some images after the other, which lie in the workspace.
  template <class Run>
  void apply(const RgbPictures& pictures, const Preprocessing& input, const Run& run) const;
  std::unique_ptr<Workspace> take(std::int64_t images) const;
  void give_back(std::unique_ptr<Workspace> workspace) const;

  const Model& model_;
  std::optional<Arena> parameters_;  ///< nothing: all that is read is packed
  Arena packed_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> idle_;  ///< as many as calls ran at the same time
};

/// A model read from a file. All but the constructor may be called by several threads at the same time.
class Classifier {
 public:
  /// Reads what load_parameters reads, and throws what it throws. `declared` is what pictures go through where the file
  /// does not say it. The model must outlive this.
  Classifier(const Model& model, const Preprocessing& declared, const char* weights);

  /// The `top` likeliest classes of each picture, the likeliest first, and their probabilities: [count, top] each.
  void classify(const RgbPictures& pictures, std::int64_t top, std::int32_t* labels, float* probabilities) const;

  /// What the head reads of each picture, or without a head the outputs: [count, model.embedding.features]. Of a model
  /// that embeds.
  void embed(const RgbPictures& pictures, float* embeddings) const;

  /// How far away each pixel of each picture is: [count, height, width]. Of a model that tells depths.
  void depth(const RgbPictures& pictures, float* depths) const;

  /// What a class is called: its name in the file, else its number; null where there is no such class.
  const char* label(std::int32_t index) const;

 private:
  const Model& model_;
  Usage usage_;
  std::optional<Network> network_;
};

/// Throws an Error unless the caller was compiled for this interface and this declaration, as its header has them.
void check_built_for(const Model& model, std::int32_t version, std::uint64_t declaration_hash);

/// What a pointer of the caller points to. Throws an Error where it is null.
template <class Object>
Object& given(Object* pointer, const char* name) {
  if (!pointer) throw Error(std::string("the pointer '") + name + "' is null");
  return *pointer;
}

/// The interface of emitted NAME_model.h files: changes with what a program compiled against one relies on.
inline constexpr std::int32_t classifier_version = 1;

/// What went wrong last in this thread, as a sentence; "" before.
const char* last_error() noexcept;
void remember_error(const char* sentence) noexcept;

/// Does the work and returns 0, or, where it throws, 1: the sentence is then this thread's last error.
template <class Work>
int guarded(const Work& work) noexcept {
  try {
    work();
    return 0;
  } catch (const std::bad_alloc&) {
    remember_error("there is not enough memory");
  } catch (const std::exception& error) {
    remember_error(error.what());
  } catch (...) {
    remember_error("something threw what is no std::exception");
  }
  return 1;
}

}  // namespace tessera::runtime
