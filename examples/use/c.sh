export PKG_CONFIG_PATH=$PWD/installed/lib/pkgconfig LD_LIBRARY_PATH=$PWD/installed/lib
cc -std=c99 classify.c $(pkg-config --cflags --libs my_vit) -o classify
./classify weights.safetensors
