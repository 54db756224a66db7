PYTHONPATH=installed/share/my_vit/python python3 check_pytorch.py
