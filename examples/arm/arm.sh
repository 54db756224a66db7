cmake -B build --toolchain aarch64.cmake
cmake --build build
qemu-aarch64 -L /usr/aarch64-linux-gnu build/forward
