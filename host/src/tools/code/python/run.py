"""Runs a script as if it lay in the present directory: under its own name, and with what it can import from there."""
import builtins
import io
import linecache
import os
import sys
import traceback
import types


def speak_utf8():
    for name, errors in (("stdout", "surrogateescape"), ("stderr", "backslashreplace")):
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors=errors)
            continue
        # Before 3.7.
        stream = io.TextIOWrapper(stream.detach(), "utf-8", errors, write_through=True)
        setattr(sys, name, stream)
        setattr(sys, "__" + name + "__", stream)


def show(kind, error, trace):
    """Leaves out of a traceback what is ours."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    traceback.print_exception(kind, error, trace)


def run():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[0] = os.path.join(folder, "lib")
    # Imported before modules of the present directory can stand in for what it needs.
    import hostel_tools  # noqa: F401

    try:
        sys.path.insert(1, os.getcwd())
    except OSError:
        # The directory is gone.
        pass
    path = os.path.join(folder, "code", "script.py")
    with open(path, "rb") as file:
        source = file.read()
    lines = source.decode("utf-8", "replace").splitlines(True)
    linecache.cache["script.py"] = (len(source), None, lines, "script.py")
    main = types.ModuleType("__main__")
    main.__file__ = path
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    sys.argv = ["script.py"]
    sys.excepthook = show
    exec(compile(source, "script.py", "exec", dont_inherit=True), main.__dict__)


speak_utf8()
run()
