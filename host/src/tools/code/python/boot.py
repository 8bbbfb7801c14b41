import os
def take(size):
    parts = []
    while size:
        data = os.read(0, min(size, 65536))
        if not data:
            os._exit(1)
        parts.append(data)
        size -= len(data)
    return b"".join(parts)
line = b""
while not line.endswith(b"\n"):
    line += take(1)
token, name, *sizes = line.split()
launcher, *parts = [take(int(size)) for size in sizes]
exec(compile(launcher, "launch.py", "exec"))
