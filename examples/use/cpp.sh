export PKG_CONFIG_PATH=$PWD/installed/lib/pkgconfig LD_LIBRARY_PATH=$PWD/installed/lib
c++ -std=c++17 embed.cpp $(pkg-config --cflags --libs my_vit) -o embed
./embed
