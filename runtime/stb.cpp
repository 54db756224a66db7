// The code of the stb libraries, compiled once. Only what is read here is compiled in: less code meets hostile files.
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_BMP
#define STBI_ONLY_PNM
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 8192
// A small PNG that unpacks without end is an error, not a full memory. All memory starts as zeros: a JPEG that lacks
// its tables would otherwise be decoded by what lay there before.
#include <cstdlib>
inline constexpr std::size_t most_bytes = std::size_t{1} << 30;
inline void* bounded_malloc(std::size_t size) { return size > most_bytes ? nullptr : std::calloc(size, 1); }
inline void* bounded_realloc(void* memory, std::size_t size) {
  return size > most_bytes ? nullptr : std::realloc(memory, size);
}
#define STBI_MALLOC(size) bounded_malloc(size)
#define STBI_REALLOC(memory, size) bounded_realloc(memory, size)
#define STBI_FREE(memory) std::free(memory)
#define STB_IMAGE_IMPLEMENTATION
#include "stb_image.h"
#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include "stb_image_write.h"
