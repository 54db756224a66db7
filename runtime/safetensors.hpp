// The safetensors file format: an 8-byte little-endian header length, a JSON header, raw little-endian numbers.
// Source: github.com/huggingface/safetensors, "Format".
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/file.hpp"

namespace tessera::runtime {

using Shape = std::vector<std::int64_t>;

/// [197, 192]
std::string printed(const Shape& shape);

/// The product of the dims, or -1 when one is negative or the product does not fit in 63 bits.
std::int64_t elements(const Shape& shape);

/// A name from a file, quoted for people: a hostile one neither fills the terminal nor steers it.
std::string printable(const std::string& name);

/// The bytes of a tensor: in memory, or still in the file, which stays open for them. What is not asked for is not
/// read, such as the optimiser's moments of a checkpoint whose parameters are used.
class TensorBytes {
 public:
  TensorBytes(Bytes bytes = {}) : memory_(std::move(bytes)) {}
  /// `size` bytes of the file from `begin` on, which must be there.
  TensorBytes(std::shared_ptr<const InputFile> file, std::uint64_t begin, std::size_t size)
      : file_(std::move(file)), begin_(begin), size_(size) {}

  std::size_t size() const { return file_ ? size_ : memory_.size(); }
  /// Those from `at` on, as many as `to` takes. Throws an Error where the file cannot be read or has become shorter, as
  /// do the others.
  void read(std::size_t at, std::span<std::uint8_t> to) const;
  /// All of them: those in memory where they lie, those of a file in `room`, which must outlive them.
  std::span<const std::uint8_t> all(Bytes& room) const;
  /// `size` of them from `at` on, in memory or in the same file.
  TensorBytes part(std::size_t at, std::size_t size) const;

 private:
  Bytes memory_;
  std::shared_ptr<const InputFile> file_;  ///< null: they are in memory
  std::uint64_t begin_ = 0;                ///< in the file
  std::size_t size_ = 0;                   ///< there
};

/// One array of numbers, as it stands in the file.
struct Tensor {
  std::string dtype;  ///< "F32", "I64", ...: safetensors' names
  Shape shape;
  TensorBytes bytes{};  ///< little-endian, row-major

  static Tensor of(Shape shape, std::span<const float> numbers);         ///< F32
  static Tensor of(Shape shape, std::span<const double> numbers);        ///< F64
  static Tensor of(Shape shape, std::span<const std::int64_t> numbers);  ///< I64
  /// `numbers` as `dtype`, F32, F16 or BF16: the nearest there is, the even one of two that are as near.
  static Tensor of(const std::string& dtype, Shape shape, std::span<const float> numbers);

  bool is_real() const;  ///< F64, F32, F16 or BF16
  /// The numbers of a real tensor, those of F64 rounded to the nearest; throws an Error for other types.
  std::vector<float> floats() const;
  /// The same into `to`, which has as many places, without a copy of the tensor between.
  void read(std::span<float> to) const;
  /// The numbers of a real tensor; throws an Error for other types.
  std::vector<double> doubles() const;
  /// The numbers of an I64, I32 or U8 tensor; throws an Error for other types.
  std::vector<std::int64_t> integers() const;
};

/// The content of a file: tensors by name, and free text by key.
struct Safetensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::string where;  ///< what errors call it: the file's name

  bool has(const std::string& name) const { return tensors.contains(name); }
  /// Throws an Error that names the file and the tensor when there is none of this name.
  const Tensor& at(const std::string& name) const;
};

/// Reads the format strictly: every tensor of a known type, its bytes as many as type and shape say, the tensors' bytes
/// one after the other without gap, overlap or rest, no name twice. Throws an Error that names `where` and the tensor.
Safetensors parse_safetensors(std::span<const std::uint8_t> content, const std::string& where);

/// Of a regular file of at most `limit` bytes, whose header is found to fit; its numbers stay there until they are
/// asked for, so that the file must not be written to in place meanwhile (write_file gives the name to another one).
Safetensors read_safetensors(const std::filesystem::path& path, std::uint64_t limit = std::uint64_t{1} << 36);

/// The metadata of a regular file. Throws an Error for all that read_safetensors refuses.
std::map<std::string, std::string> read_metadata(const std::filesystem::path& path);

/// Where the numbers of a tensor lie in a file, in bytes from its start.
struct TensorPlace {
  std::string dtype;
  Shape shape;
  std::uint64_t begin = 0;
};

/// What a file says of itself, without its numbers.
struct SafetensorsHeader {
  std::map<std::string, TensorPlace> tensors;
  std::map<std::string, std::string> metadata;
};

/// Of a file of any size. Throws an Error for all that read_safetensors refuses.
SafetensorsHeader read_safetensors_header(const InputFile& file);

/// Whether metadata can hold the text and give it back: it is UTF-8.
bool can_hold(const std::string& text);

/// An array whose numbers lie elsewhere.
struct TensorView {
  std::string dtype;
  Shape shape;
  std::span<const std::uint8_t> bytes;
};

/// Writes the file, all or nothing, as write_file. Equal content gives equal bytes: names are sorted, the header is
/// padded to 8 bytes.
void write_safetensors(const std::filesystem::path& path, const Safetensors& content,
                       const std::filesystem::path& keep = {});
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata,
                       const std::map<std::string, TensorView>& tensors, const std::filesystem::path& keep = {});

}  // namespace tessera::runtime
