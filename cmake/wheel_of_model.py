"""What pip asks to make a wheel of a model's folder, share/NAME/python (PEP 517): the package NAME as it lies there, with the
shared library and, where somebody put them into it, the weights. Needs Python's own library alone: no compiler, no setuptools."""
import base64
import hashlib
import pathlib
import sysconfig
import tomllib
import zipfile


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with open("pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    name, version = project["name"], project["version"]
    # The library is of one processor and one system; of Python it needs nothing but ctypes.
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {package}\n" for package in project["dependencies"])
    files = {str(path): path.read_bytes() for path in sorted(pathlib.Path(name).iterdir()) if path.is_file()}
    files[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
                                 f"Summary: {project['description']}\n{needs}").encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: Tessera\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel
