cmake -S project -B project/build -DCMAKE_PREFIX_PATH="$PWD/installed"
cmake --build project/build
project/build/bars weights.safetensors
