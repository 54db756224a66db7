// What a disk can hold after a crash, from a log of what a program asked of it (shim.cpp).
#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tessera::runtime {

/// One change: kind is o(pen), w(rite), s(ync), t(runcate), c(lose), r(ename), l(ink), u(nlink) or m(ake a folder).
struct DiskEvent {
  char kind = 0;
  long file = 0, size = 0;
  std::string first, second;
};

inline std::vector<DiskEvent> disk_events(const std::string& log) {
  std::vector<DiskEvent> events;
  for (std::size_t at = 0; at + 5 * sizeof(long) <= log.size();) {
    long header[5];
    std::memcpy(header, log.data() + at, sizeof header);
    at += sizeof header;
    const auto first = static_cast<std::size_t>(header[3]), second = static_cast<std::size_t>(header[4]);
    events.push_back(
        {static_cast<char>(header[0]), header[1], header[2], log.substr(at, first), log.substr(at + first, second)});
    at += first + second;
  }
  return events;
}

/// A disk of weak promises: a file's bytes are there after its fsync, names after their folder's. Until then a file
/// holds what it held at its last fsync, all that was written since, or a half of it; and of the changes of names that
/// wait the first few have happened, in order. A file in a folder without a name is lost.
class Disk {
 public:
  using Files = std::map<std::string, std::string>;

  /// What is in the folder has reached the disk, as has the folder itself.
  explicit Disk(const std::filesystem::path& root) {
    durable_[root] = folder();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      std::string bytes;
      if (std::ifstream file(entry.path(), std::ios::binary); entry.is_regular_file())
        bytes.assign(std::istreambuf_iterator<char>(file), {});
      durable_[entry.path()] =
          entry.is_directory() ? folder() : std::make_shared<Content>(Content{bytes, bytes, false});
    }
    names_ = durable_;
  }

  void apply(const DiskEvent& event) {
    const auto change = [&](const std::string& name, const std::function<void(Names&)>& of) {
      of(names_);
      waiting_.push_back({parent(name), of});
    };
    const auto content = open_.contains(event.file) ? open_.at(event.file) : nullptr;
    switch (event.kind) {
      case 'o':
        if (!names_.contains(event.first))
          change(event.first,
                 [name = event.first, made = std::make_shared<Content>()](Names& names) { names[name] = made; });
        open_[event.file] = names_.at(event.first);
        open_names_[event.file] = event.first;
        break;
      case 'w':
        if (content) content->now += event.first;
        break;
      case 't':
        if (content) content->now.resize(static_cast<std::size_t>(event.size));
        break;
      case 's':
        if (content && content->folder)
          sync_names(open_names_.at(event.file));
        else if (content)
          content->synced = content->now;
        break;
      case 'c':
        open_.erase(event.file);
        break;
      case 'r':
        change(event.second, [from = event.first, to = event.second](Names& names) {
          if (names.contains(to) && names.at(from) == names.at(to)) return;  // two names of one file: nothing happens
          names[to] = names.at(from);
          names.erase(from);
        });
        break;
      case 'l':
        change(event.second, [from = event.first, to = event.second](Names& names) { names[to] = names.at(from); });
        break;
      case 'u':
        change(event.first, [name = event.first](Names& names) { names.erase(name); });
        break;
      case 'm':
        change(event.first, [name = event.first, made = folder()](Names& names) { names[name] = made; });
        break;
    }
  }

  /// Calls `see` with the files of everything that a crash can leave now.
  void after_a_crash(const std::function<void(const Files&)>& see) const {
    Names names = durable_;
    for (std::size_t changes = 0;; ++changes) {
      for (const int kept : {0, 1, 2}) {
        Files files;
        for (const auto& [name, content] : names)
          if (!content->folder && names.contains(parent(name))) files[name] = content->after(kept);
        see(files);
      }
      if (changes == waiting_.size()) return;
      waiting_[changes].of(names);
    }
  }

 private:
  struct Content {
    std::string now, synced;
    bool folder = false;
    /// What was synced, what was written, or a half of it.
    std::string after(int kept) const {
      return kept == 0 || synced == now ? synced : kept == 1 ? now : now.substr(0, now.size() / 2);
    }
  };
  using Names = std::map<std::string, std::shared_ptr<Content>>;
  struct Change {
    std::string folder;
    std::function<void(Names&)> of;
  };

  static std::shared_ptr<Content> folder() { return std::make_shared<Content>(Content{"", "", true}); }
  static std::string parent(const std::string& name) { return std::filesystem::path(name).parent_path().string(); }
  void sync_names(const std::string& folder) {
    for (const Change& change : waiting_)
      if (change.folder == folder) change.of(durable_);
    std::erase_if(waiting_, [&](const Change& change) { return change.folder == folder; });
  }

  Names names_, durable_;
  std::vector<Change> waiting_;
  std::map<long, std::shared_ptr<Content>> open_;
  std::map<long, std::string> open_names_;
};

}  // namespace tessera::runtime
