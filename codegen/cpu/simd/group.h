/// The images of a batch that are worked on together, as many as scratch memory has room for: whole chunks of it, of
/// which there are 16. Sums over the batch go on from group to group, chunk after chunk or image after image, so that
/// their bits do not depend on how many groups there are.
struct Group {
  std::int64_t batch, chunk, end;  ///< chunks, from the first to before the last
  std::int64_t first, images;

  /// Where a chunk begins, counted from the group's first image.
  std::int64_t at(std::int64_t which) const { return which * batch / 16 - first; }
};
[[maybe_unused]] static Group group_of(std::int64_t batch, std::int64_t chunks, std::int64_t group) {
  const std::int64_t chunk = group * chunks, end = std::min<std::int64_t>(16, chunk + chunks);
  return {batch, chunk, end, chunk * batch / 16, end * batch / 16 - chunk * batch / 16};
}
/// How many chunks so many images are at least.
[[maybe_unused]] static std::int64_t chunks_of(std::int64_t batch, std::int64_t images) {
  return std::min(images, batch) * 16 / batch;
}
