cmake --install build --prefix installed
build/my_vit export --out run -o weights.safetensors
