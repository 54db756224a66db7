#include "runtime/rendezvous.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>
#include <system_error>
#include <tuple>

#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/text_reader.hpp"

namespace tessera::runtime {
namespace {

using Clock = std::chrono::steady_clock;

const std::string first_line = "tessera rendezvous 1\n";
constexpr const char* variable = " (TESSERA_RENDEZVOUS)";
constexpr std::uint64_t most_bytes = 1 << 26;

/// A notice as it lies in a file.
struct Record {
  std::int64_t to, kind, number;
};

std::string drawn() {
  std::random_device random;
  std::ostringstream hex;
  for (int i = 0; i < 4; ++i) hex << std::hex << (random() | 1u);
  return hex.str();
}

/// What stands behind the first line; nothing where there is no such file.
std::optional<std::string> content(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  Bytes bytes;
  try {
    bytes = read_file(path, most_bytes);
  } catch (const Error&) {
    if (!std::filesystem::exists(path, ignored)) return std::nullopt;  // removed meanwhile
    throw;
  }
  const std::string text(bytes.begin(), bytes.end());
  if (!text.starts_with(first_line))
    fail(path.string(), variable, " is not a file of a rendezvous: name one that is not there yet");
  return text.substr(first_line.size());
}

/// The line of a rank, without its notices.
std::string line_of(int rank, int count, const std::string& number) {
  return text("rank ", rank, " of ", count, ", ", number, "\n");
}

}  // namespace

Rendezvous::Rendezvous(std::filesystem::path file, int rank, int count)
    : file_(std::move(file)),
      rank_(rank),
      count_(count),
      numbers_(static_cast<std::size_t>(count)),
      counts_(static_cast<std::size_t>(count), count),
      heard_(static_cast<std::size_t>(count)) {
  static_cast<void>(content(file_));
  static_cast<void>(content(file_of(rank_)));
  std::string& own = numbers_[static_cast<std::size_t>(rank_)];
  own = drawn();
  write_file(file_of(rank_), first_line + line_of(rank_, count_, own));
}

Rendezvous::~Rendezvous() {
  std::error_code ignored;
  std::filesystem::remove(file_of(rank_), ignored);
  if (rank_ == 0) std::filesystem::remove(file_, ignored);
}

std::filesystem::path Rendezvous::file_of(int rank) const {
  std::filesystem::path path = file_;
  path += "." + std::to_string(rank);
  return path;
}

void Rendezvous::demand_own() const {
  const std::optional<std::string> own = content(file_of(rank_));
  if (!own || !own->starts_with(line_of(rank_, count_, numbers_[static_cast<std::size_t>(rank_)])))
    fail("another process is rank ", rank_, " at ", file_.string(), variable,
         " as well: each needs its own TESSERA_RANK, and each launch its own file");
}

bool Rendezvous::look() {
  demand_own();
  bool all = true;
  for (int rank = 0; rank < count_; ++rank) {
    if (rank == rank_) continue;
    std::string& number = numbers_[static_cast<std::size_t>(rank)];
    number.clear();
    if (const std::optional<std::string> said = content(file_of(rank))) {
      TextReader words(said->substr(0, said->find('\n')));
      std::string word;
      int of_rank = -1, of_count = 0;
      char comma = 0;
      std::string read;
      if (words >> word >> of_rank >> word >> of_count >> comma >> read && of_rank == rank) {
        counts_[static_cast<std::size_t>(rank)] = of_count;
        if (of_count == count_) number = read;
      }
    }
    all = all && !number.empty();
  }
  return all;
}

void Rendezvous::write(const std::string& id) const {
  std::string said = first_line + text(count_, " ranks\n");
  for (const std::string& number : numbers_) said += (number.empty() ? "-" : number) + "\n";
  write_file(file_, said + id + "\n");
}

bool Rendezvous::give(std::span<const std::byte> id) {
  if (!look()) return false;
  if (numbers_ == written_) return true;
  std::ostringstream hex;
  for (const std::byte byte : id) hex << std::hex << (static_cast<unsigned>(byte) | 0x100u);  // 1 and two digits
  write(hex.str());
  written_ = numbers_;
  return true;
}

void Rendezvous::give_up() { write("given up"); }

bool Rendezvous::take(std::span<std::byte> id) {
  demand_own();
  const std::optional<std::string> said = content(file_);
  of_another_ = said.has_value();
  if (!said) return false;
  TextReader lines(*said);
  std::string line;
  std::getline(lines, line);
  if (line != text(count_, " ranks")) return false;
  std::vector<std::string> numbers;
  for (int rank = 0; rank < count_ && std::getline(lines, line); ++rank) numbers.push_back(line);
  if (numbers.size() != numbers_.size() ||
      numbers[static_cast<std::size_t>(rank_)] != numbers_[static_cast<std::size_t>(rank_)] ||
      !std::getline(lines, line))
    return false;
  if (line == "given up") throw AgreedError("rank 0 has given up");
  if (line.size() != 3 * id.size()) return false;
  for (std::size_t i = 0; i < id.size(); ++i)
    id[i] = static_cast<std::byte>(std::strtoul(line.substr(3 * i, 3).c_str(), nullptr, 16) & 0xffu);
  numbers_ = numbers;
  return true;
}

std::string Rendezvous::missing() const {
  if (rank_ != 0)
    return text("rank ", rank_, " has waited for rank 0 at ", file_.string(), variable,
                of_another_ ? ", where there is only the file of another launch"
                            : ": it has not come, or the folder is not shared by all machines");
  std::string absent, others;
  int count = 0;
  for (int rank = 1; rank < count_; ++rank) {
    if (!numbers_[static_cast<std::size_t>(rank)].empty()) continue;
    absent += text(count++ ? ", " : "", rank);
    const int said = counts_[static_cast<std::size_t>(rank)];
    if (others.empty() && said != count_) others = text("; rank ", rank, " was started as one of ", said);
  }
  return text(count == 1 ? "rank " : "ranks ", absent, count == 1 ? " has" : " have", " not come to ", file_.string(),
              variable, " as one of ", count_, others);
}

bool Rendezvous::met() const {
  return std::ranges::none_of(numbers_, [](const std::string& number) { return number.empty(); });
}

bool Rendezvous::claim() const { return ::unlink(file_.c_str()) == 0; }  // which one of them can

void Rendezvous::tell(const Notice& notice, int rank) const {
  const Record record{rank, static_cast<std::int64_t>(notice.kind), notice.number};
  std::array<std::uint8_t, sizeof record> bytes{};
  std::memcpy(bytes.data(), &record, sizeof record);
  const Descriptor file(::open(file_of(rank_).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file.number() >= 0) write_all(file, bytes);  // who cannot be reached does not get it
}

bool Rendezvous::hear(Notice& notice, int& rank) {
  // Each look opens as many files as there are ranks.
  const std::chrono::duration<double> rest(std::max(0.1, 0.01 * count_));
  if (notices_.empty() && Clock::now() - listened_ >= rest) {
    listened_ = Clock::now();
    for (int from = 0; from < count_; ++from) {
      if (from == rank_) continue;
      const auto at = static_cast<std::size_t>(from);
      const std::string head = first_line + line_of(from, count_, numbers_[at]);
      try {
        const InputFile file(file_of(from));
        std::string found(head.size(), '\0');
        if (file.size() < head.size()) continue;
        file.read(0, {reinterpret_cast<std::uint8_t*>(found.data()), found.size()});
        if (found != head) continue;
        for (Record record{}; head.size() + heard_[at] + sizeof record <= file.size(); heard_[at] += sizeof record) {
          std::array<std::uint8_t, sizeof record> bytes{};
          file.read(head.size() + heard_[at], bytes);
          std::memcpy(&record, bytes.data(), sizeof record);
          if (record.to == rank_) notices_.push_back({{static_cast<Notice::Kind>(record.kind), record.number}, from});
        }
      } catch (const Error&) {  // it has left
      }
    }
  }
  if (notices_.empty()) return false;
  std::tie(notice, rank) = notices_.front();
  notices_.pop_front();
  return true;
}

}  // namespace tessera::runtime
