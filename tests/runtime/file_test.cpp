#include "runtime/file.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "runtime/gzip.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/packed.hpp"

namespace tessera::runtime {
namespace {

void write(const std::filesystem::path& path, const std::string& content, const std::filesystem::path& keep) {
  const Bytes bytes = bytes_of(content);
  const std::span<const std::uint8_t> part(bytes);
  write_file(path, std::span(&part, 1), keep);
}

TEST(File, WhatIsWrittenIsReadAndNothingElseStaysInTheFolder) {
  TemporaryFolder folder;
  write_file(folder / "a", "first");
  write_file(folder / "a", "second");
  EXPECT_EQ(read_file(folder / "a", 100), bytes_of("second"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, LeftoversOfKilledWritersAreRemovedAndThoseOfTheLivingStay) {
  TemporaryFolder folder;
  const std::filesystem::path killed = folder / ".tessera-0123456789abcdef.partial";
  const std::filesystem::path living = folder / ".tessera-fedcba9876543210.partial";
  const std::filesystem::path others = folder / "a.partial";
  for (const auto& path : {killed, living, others}) spill(path, "not all of it");
  const Descriptor writer(::open(living.c_str(), O_RDONLY));
  ASSERT_EQ(::flock(writer.number(), LOCK_EX), 0);
  write_file(folder / "a", "new");
  EXPECT_EQ(slurp(folder / "a"), "new");
  EXPECT_FALSE(std::filesystem::exists(killed));
  EXPECT_TRUE(std::filesystem::exists(living));
  EXPECT_TRUE(std::filesystem::exists(others));
}

TEST(File, WritersOfOneFileAtOnceAllSucceedAndLeaveItWhole) {
  TemporaryFolder folder;
  std::vector<std::string> contents, errors(4);
  for (const char letter : {'a', 'b', 'c', 'd'}) contents.push_back(std::string(1 << 20, letter));
  std::vector<std::thread> writers;
  for (std::size_t i = 0; i < contents.size(); ++i)
    writers.emplace_back([&, i] {
      for (int n = 0; n < 10 && errors[i].empty(); ++n)
        errors[i] = sentence([&] { write(folder / "file", contents[i], folder / "kept"); });
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(errors, std::vector<std::string>(4));
  for (const char* name : {"file", "kept"}) EXPECT_EQ(std::ranges::count(contents, slurp(folder / name)), 1) << name;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(File, WhatAFileWasStaysUnderAnotherNameOnceTheNewOneIsWhole) {
  TemporaryFolder folder;
  const auto put = [&](const std::string& content) { write(folder / "a", content, folder / "kept"); };
  put("first");
  EXPECT_FALSE(std::filesystem::exists(folder / "kept"));
  put("second");
  put("third");
  EXPECT_EQ(slurp(folder / "kept"), "second");
  std::filesystem::remove(folder / "kept");
  std::filesystem::create_directories(folder / "kept/in the way");
  EXPECT_CONTAINS(sentence([&] { put("fourth"); }), "cannot write ");
  EXPECT_EQ(slurp(folder / "a"), "third");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
}

TEST(File, LinkThatLeadsToItselfIsNotReplacedByAFile) {
  TemporaryFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_EQ(sentence([&] { write_file(folder / "loop", "x"); }),
            "cannot write " + (folder / "loop").string() + ": Too many levels of symbolic links");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "loop"));
}

TEST(File, FailedWriteIsOneSentenceAndKeepsTheOldContent) {
  TemporaryFolder folder;
  EXPECT_EQ(sentence([&] { write_file(folder / "no" / "a", "x"); }),
            "cannot write " + (folder / "no/a").string() + ": No such file or directory");
  std::filesystem::create_directory(folder / "taken");
  spill(folder / "taken" / "file", "x");
  EXPECT_CONTAINS(sentence([&] { write_file(folder / "taken", "x"); }), "cannot write");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, DeviceIsNotReplacedByAFile) {
  TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/null", folder / "null");
  EXPECT_EQ(sentence([&] { write_file(folder / "null", "x"); }),
            "cannot write " + (folder / "null").string() + ": it is no regular file");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "null"));
}

TEST(File, UnreadableFilesAreNamed) {
  TemporaryFolder folder;
  EXPECT_EQ(sentence([&] { read_file(folder / "a", 10); }),
            "cannot open " + (folder / "a").string() + ": No such file or directory");
  EXPECT_CONTAINS(sentence([&] { read_file(folder.path(), 10); }), "it is a folder");
}

TEST(File, LongerFileThanTheLimitIsRefusedBeforeItIsRead) {
  TemporaryFolder folder;
  spill(folder / "a", "12345");
  EXPECT_EQ(read_file(folder / "a", 5).size(), 5u);
  EXPECT_CONTAINS(sentence([&] { read_file(folder / "a", 4); }), "longer than the 4 bytes");
  std::filesystem::resize_file(folder / "a", std::uintmax_t{1} << 40);  // a hole
  EXPECT_CONTAINS(sentence([&] { read_file(folder / "a", 1 << 20); }), "longer than the 1048576 bytes");
}

TEST(File, PipesAndDevicesAreNotRead) {
  TemporaryFolder folder;
  const std::filesystem::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::filesystem::path& path : {pipe, std::filesystem::path("/dev/zero")})
    EXPECT_EQ(sentence([&] { read_file(path, 1 << 20); }), "cannot read " + path.string() + ": it is no regular file");
  EXPECT_EQ(read_file("/proc/self/mem", 10).size(), 0u);  // one that tells no size
}

TEST(Gzip, IsUnpackedWhateverTheFileIsCalled) {
  TemporaryFolder folder;
  spill(folder / "plain", "text");
  spill(folder / "packed", gzip("text"));
  EXPECT_EQ(read_packed_file(folder / "plain", 100), bytes_of("text"));
  EXPECT_EQ(read_packed_file(folder / "packed", 100), bytes_of("text"));
}

TEST(Gzip, SeveralMembersAreOneContent) {
  EXPECT_EQ(unpack_gzip(bytes_of(gzip("one ") + gzip("") + gzip("two")), 100, "x"), bytes_of("one two"));
}

TEST(Gzip, EveryTruncationIsRefused) {
  const std::string packed = gzip("some text that is a little longer");
  for (std::size_t size = 0; size < packed.size(); ++size)
    EXPECT_EQ(sentence([&] { unpack_gzip(bytes_of(packed.substr(0, size)), 100, "x"); }),
              "x is truncated: its gzip data ends too early")
        << size;
}

TEST(Gzip, DamageAndTrailingBytesAreRefused) {
  std::string packed = gzip("some text that is a little longer");
  EXPECT_CONTAINS(sentence([&] { unpack_gzip(bytes_of(packed + "rest"), 100, "x"); }), "x is not valid gzip data");
  packed[packed.size() - 6] ^= 1;
  EXPECT_EQ(sentence([&] { unpack_gzip(bytes_of(packed), 100, "x"); }),
            "x is not valid gzip data: incorrect data check");
}

TEST(Gzip, SmallFileThatUnpacksToAFullMemoryIsRefused) {
  const std::string packed = gzip(std::string(1 << 24, 'a'));
  ASSERT_LT(packed.size(), 20000u);
  EXPECT_CONTAINS(sentence([&] { unpack_gzip(bytes_of(packed), 1 << 20, "x"); }),
                  "x unpacks to more than the 1048576 bytes");
}

TEST(Gzip, NoMoreIsUnpackedThanTheHeaderDeclares) {
  const Bytes packed = bytes_of(gzip(std::string(1 << 24, 'a')));
  EXPECT_EQ(sentence([&] { unpack_gzip(packed, 1 << 30, "x", [](auto) { return 100; }); }),
            "x unpacks to more than the 100 bytes that its header declares");
  EXPECT_EQ(unpack_gzip(packed, 1 << 30, "x", [](auto first) { return first.size() + (1 << 24); }).size(), 1u << 24);
}

}  // namespace
}  // namespace tessera::runtime
