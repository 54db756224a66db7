cp weights.safetensors installed/share/my_vit/python/my_vit
python3 -m venv --system-site-packages venv
venv/bin/pip wheel --no-deps --wheel-dir dist installed/share/my_vit/python
venv/bin/pip install dist/*.whl
venv/bin/python classify.py
