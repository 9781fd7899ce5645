"""Builds a Python environment into BERTH_STATE_DIR: the agent of a session with `spec.build`.

A turn's input is {"requirements": [TEXT…], "python": "3.12"?, "locked": true?}. Locked requirements are the packages of an earlier
build, which are installed as they are. Its output describes what was built: {"python", "implementation", "abi", "libc", "arch", "uv",
"packages": [{"name", "version", "hashes": ["sha256:…"]}…], "bytes"}. What goes wrong ends the turn with an error whose code is in the
envelope's metadata: {"code": "Unsolvable"}.

Only uv's two steps that ask the index see UV_INDEX_… variables; the program starts itself anew without them to check and compile.
"""
import argparse
import json
import os
import platform
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig

STATE = os.environ["BERTH_STATE_DIR"]
VENV = os.path.join(STATE, "venv")
# File name of the lock that uv writes. The installed requirements with hashes are made from it.
LOCK = os.path.join(STATE, "pylock.toml")
MANIFEST = os.path.join(STATE, "manifest.json")
INTERPRETER = os.path.join(VENV, "bin", "python")
# Facts that the installing process leaves to the one that finishes.
INSTALLED = os.path.join(os.environ["TMPDIR"], "installed.json")
MESSAGE_BYTES = 3500
# Maximum bytes of the installed and compiled files: the limit of a state.
MAX_BYTES = 256 * 1024 * 1024

# Syntax of requirements, as in core/environments/requirements.ts: a user who may create a session may give it any input.
NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
SPECIFIER = r"(===|==|~=|!=|<=|>=|<|>) ?[A-Za-z0-9.*+!_-]+"
MARKER = r"""([A-Za-z0-9_.<>=!~() ]|"[A-Za-z0-9_.+* -]*"|'[A-Za-z0-9_.+* -]*')+"""
HASH = r"--hash=(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})"
REQUIREMENT = re.compile(
    rf"{NAME}( ?\[ ?{NAME}( ?, ?{NAME})* ?\])?( ?{SPECIFIER}( ?, ?{SPECIFIER})*)?( ?; ?{MARKER})?( {HASH})*"
)


# Name of a package's file, which uv would take from the disk.
ARCHIVE = re.compile(r"[^ ;\[=<>~!]+\.(whl|zip|tgz|tar(\.[a-z0-9]+)?)\b", re.I)


class Problem(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--uv", required=True)
    parser.add_argument("--index", help="URL of the index; default: uv's")
    parser.add_argument("--cache", help="directory of uv's cache; default: one for this build alone")
    parser.add_argument("--source-distributions", action="store_true", help="build packages that have no wheel")
    parser.add_argument("--finish", action="store_true", help="check, compile and describe what is installed")
    options = parser.parse_args()
    os.environ["UV_CACHE_DIR"] = options.cache or os.path.join(os.environ["TMPDIR"], "uv-cache")
    try:
        if options.finish:
            answer({"status": "success", "output": finish(options.uv)})
            return
        install(options, json.loads(sys.stdin.readline())["input"])
    except Problem as problem:
        message = str(problem)[-MESSAGE_BYTES:]
        answer({"status": "error", "error": message, "output": None, "metadata": {"code": problem.code}})
        return
    # From here on, code of the packages may run (.pth files). This process must not keep what the index was asked with.
    os.execve(sys.executable, [sys.executable, "-I", __file__, "--uv", options.uv, "--finish"], plain_environment())


def install(options, request):
    """Installs the requirements into VENV. No code of a wheel runs here."""
    uv = options.uv
    check_requirements(request.get("requirements"))
    check_python(request.get("python"))
    shutil.rmtree(VENV, ignore_errors=True)
    # uv prefers the versions of an existing lock.
    if os.path.exists(LOCK):
        os.remove(LOCK)
    version = run([uv, "--version"], "BuildFailed", missing=uv).split()[1]
    say("uv %s, Python %s" % (version, platform.python_version()))
    run([uv, "venv", "--quiet", "--no-config", "--relocatable", "--python", sys.executable, VENV], "BuildFailed")
    common = ["--no-config", "--python", INTERPRETER, *trusted()]
    if not options.source_distributions:
        common += ["--only-binary", ":all:"]
    if options.index:
        # The name makes uv read the credentials from UV_INDEX_BERTH_USERNAME and UV_INDEX_BERTH_PASSWORD.
        common += ["--default-index", "berth=" + options.index]
    of_venv = os.listdir(os.path.join(VENV, "bin"))
    if request.get("locked"):
        locked = request["requirements"]
    else:
        say("resolving %d requirements" % len(request["requirements"]))
        asked = written("requirements.in", request["requirements"])
        run([uv, "pip", "compile", "--quiet", "--no-header", "--format", "pylock.toml", "--output-file", LOCK, *common, asked], ask=True)
        with open(LOCK) as file:
            locked = requirements_of(file.read(), given_digests(request["requirements"]))
    say("installing")
    requirements = written("requirements.lock", locked)
    run([uv, "pip", "install", "--no-deps", "--require-hashes", "--link-mode", "copy", *common, "-r", requirements], ask=True)
    check_size()
    with open(INSTALLED, "w") as file:
        json.dump({"uv": version, "of_venv": of_venv, "locked": locked}, file)


def finish(uv):
    """Checks, compiles and describes what is installed."""
    with open(INSTALLED) as file:
        installed = json.load(file)
    packages = json.loads(run([uv, "pip", "list", "--quiet", "--no-config", "--python", INTERPRETER, "--format", "json"], "BuildFailed"))
    hashes = {plain_name(line.split("==")[0]): re.findall(r"--hash=(\S+)", line) for line in installed["locked"]}
    packages = [{**package, "hashes": hashes.get(plain_name(package["name"]), [])} for package in packages]
    run([uv, "pip", "check", "--quiet", "--no-config", "--python", INTERPRETER], "CheckFailed")
    run([INTERPRETER, "-I", "-c", "pass"], "CheckFailed")
    say("compiling")
    # Compiled files are not checked against their sources, whose times may change in transport. A file that does not compile is
    # for another Python version and is not imported.
    subprocess.run(
        [INTERPRETER, "-I", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash", site_packages()],
        env=plain_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
    )
    check_size()
    # The interpreter is the image's, and is linked where the environment is used.
    for name in installed["of_venv"]:
        os.remove(os.path.join(VENV, "bin", name))
    for name in ("pyvenv.cfg", ".lock", ".gitignore", "CACHEDIR.TAG"):
        if os.path.exists(os.path.join(VENV, name)):
            os.remove(os.path.join(VENV, name))
    described = {**facts(), "uv": installed["uv"], "packages": packages, "bytes": size_of(VENV)}
    with open(MANIFEST, "w") as file:
        json.dump(described, file)
    say("%d packages, %d bytes" % (len(packages), described["bytes"]))
    return described


def written(name, lines):
    """Writes a file of requirements; returns its path."""
    path = os.path.join(os.environ["TMPDIR"], name)
    with open(path, "w") as file:
        file.write("".join(line + "\n" for line in lines))
    return path


def given_digests(requirements):
    """Digests that the requirements name, by package: uv's lock names those of the index instead."""
    found = {}
    for text in requirements:
        digests = re.findall(r"--hash=(\S+)", text)
        if digests:
            found.setdefault(plain_name(re.match(NAME, text)[0]), []).extend(digests)
    return found


def requirements_of(lock, given):
    """
    Requirements with hashes, one for each package of a lock that uv wrote: pylock.toml of PEP 751, each table's keys on their lines.
    Where digests are given for a package, only those of them count that the lock has.
    """
    found = []
    for package in lock.split("[[packages]]")[1:]:
        name, version = (re.search(r'^%s = "([^"]+)"$' % key, package, re.M) for key in ("name", "version"))
        if not name or not version:
            raise Problem("BuildFailed", "uv has locked a package without a name or a version: %.200s" % package.strip())
        hashes = ["%s:%s" % each for each in re.findall(r'\b(sha256|sha384|sha512) = "([0-9a-f]+)"', package)]
        wanted = given.get(plain_name(name[1]))
        if wanted:
            hashes = both(hashes, wanted, name[1])
        found.append("%s==%s %s" % (name[1], version[1], " ".join("--hash=" + each for each in dict.fromkeys(hashes))))
    return found


def both(locked, wanted, name):
    """Digests that are wanted and locked; those of algorithms that the index does not name are left to uv, which checks the file."""
    algorithms = {digest.split(":")[0] for digest in locked}
    left = [digest for digest in wanted if digest in locked] or [digest for digest in wanted if digest.split(":")[0] not in algorithms]
    if left:
        return left
    message = "%s: no file of the index that fits has a digest that the requirements name; they name %s, the index has %s"
    raise Problem("HashMismatch", message % (name, shown(wanted), shown(locked)))


def shown(digests):
    return ", ".join(digests[:3]) + (" and %d more" % (len(digests) - 3) if len(digests) > 3 else "")


def plain_name(name):
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def trusted():
    """Flags that have uv trust what the image trusts, and the class's certificates; without either it trusts its own list."""
    own = os.environ.pop("UV_INDEX_BERTH_CERTIFICATES", None)
    paths = ssl.get_default_verify_paths()
    if own:
        bundle = os.path.join(os.environ["TMPDIR"], "certificates.pem")
        with open(bundle, "w") as file:
            if paths.cafile:
                with open(paths.cafile) as system:
                    file.write(system.read() + "\n")
            file.write(own)
        os.environ["SSL_CERT_FILE"] = bundle
    has_store = own or paths.cafile or (paths.capath and os.listdir(paths.capath))
    return ["--system-certs"] if has_store else []


def facts():
    """Facts of this interpreter that must match the one that uses the environment."""
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "abi": sysconfig.get_config_var("SOABI") or "",
        "libc": "glibc" if platform.libc_ver()[0] == "glibc" else "musl",
        "arch": platform.machine(),
    }


def check_requirements(requirements):
    if not isinstance(requirements, list):
        raise Problem("RequirementInvalid", "the input names no list of requirements")
    for number, text in enumerate(requirements):
        if not isinstance(text, str) or not REQUIREMENT.fullmatch(text) or ARCHIVE.match(text):
            raise Problem(
                "RequirementInvalid",
                "requirements[%d]: %.100r is not of the form name[extra] ==1.2; marker --hash=sha256:..." % (number, text),
            )


def check_python(wanted):
    if not wanted:
        return
    parts = wanted.split(".")
    if platform.python_version().split(".")[: len(parts)] != parts:
        raise Problem(
            "PythonMissing",
            "spec.python: the image has Python %s and not %s; ask for that one, or name an image with the other"
            % (platform.python_version(), wanted),
        )


def site_packages():
    return os.path.join(VENV, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")


def check_size():
    """Refuses what cannot be kept before it is compiled. The limit of the packed archive is the runner's."""
    if size_of(VENV) <= MAX_BYTES:
        return
    sizes = sorted(((size_of(os.path.join(site_packages(), name)), name) for name in os.listdir(site_packages())), reverse=True)
    largest = ", ".join("%s %.1f MB" % (name, size / 1e6) for size, name in sizes[:5])
    raise Problem("EnvironmentTooLarge", "the environment has more than %d bytes; the largest are %s" % (MAX_BYTES, largest))


def size_of(path):
    if not os.path.isdir(path) or os.path.islink(path):
        return os.lstat(path).st_size
    return sum(size_of(os.path.join(path, name)) for name in os.listdir(path))


def plain_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("UV_")}


def run(command, code=None, ask=False, missing=None):
    """Runs a program to its end and returns its stdout; raises a Problem with what it said."""
    try:
        env = dict(os.environ) if ask else plain_environment()
        env.update({"UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never", "UV_CACHE_DIR": os.environ["UV_CACHE_DIR"]})
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    except FileNotFoundError:
        if not missing:
            raise
        raise Problem("UvMissing", "there is no uv at %s; install it (for example by `pip install uv`), or say in BERTH_UV where it is" % missing)
    if done.returncode == 0:
        return done.stdout
    said = (done.stderr.strip() or done.stdout.strip() or "it ended with code %d" % done.returncode)[-MESSAGE_BYTES:]
    raise Problem(classify(said) if ask else code, said)


REFUSED = re.compile(r"\b(401 Unauthorized|403 Forbidden)\b")
UNSOLVABLE = re.compile(r"no solution found|was not found in the (package )?registry|not found in the provided package locations|no wheels|unsatisfiable", re.I)
UNREACHABLE = re.compile(
    r"error sending request|dns error|connection (refused|reset|closed)|timed out|tcp connect|could not connect|failed to fetch"
    r"|status server error|error decoding response|invalid peer certificate",
    re.I,
)


def classify(said):
    """Code of what uv said when a step that asks the index failed. Names of packages are part of it, so whole phrases count."""
    if re.search(r"hash mismatch|mismatched hash", said, re.I):
        return "HashMismatch"
    if REFUSED.search(said):
        return "IndexRefused"
    if UNSOLVABLE.search(said):
        return "Unsolvable"
    if UNREACHABLE.search(said):
        return "IndexUnreachable"
    return "BuildFailed"


def say(text):
    print(text, file=sys.stderr, flush=True)


def answer(envelope):
    print(os.environ["BERTH_RESULT_START_MARKER"], json.dumps(envelope), os.environ["BERTH_RESULT_END_MARKER"], flush=True)


main()
