"""How a program is measured."""
import functools, os, pathlib, resource, select, statistics, subprocess, sys, time

#: What a peer prints when it could begin.
READY = "ready\n"


def measure(words, ready, folder=None):
    """Wall seconds, processor seconds, those in the kernel among them, and peak MB of a program's work. `ready` is called right before it
    begins. What a program takes to start is not counted: a peer, which is a Python program, says when it has imported what it needs, and
    prints its own seconds (`clock`); from those of the command what it takes to print its version is subtracted."""
    if words[0] == sys.executable:
        *_, peak, printed = watch(words, ready, folder)
        return *map(float, printed.split()), peak
    start = start_of(words[0])
    ready()
    *used, peak, _ = watch(words, folder=folder)
    return *(max(seconds - of_start, 1e-4) for seconds, of_start in zip(used, start)), peak


@functools.cache
def start_of(command):
    """Wall seconds, processor seconds and those in the kernel that the command takes to print its version."""
    runs = [watch([command, "--version"])[:3] for _ in range(21)]
    return [statistics.median(column) for column in zip(*runs)]


def watch(words, ready=None, folder=None):
    """Wall seconds, processor seconds, those in the kernel, and peak MB of a process, from its start to its end, and what it prints.
    One that waits until `ready` has been called prints `READY` first."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdin=subprocess.PIPE if ready else None, stdout=subprocess.PIPE, text=True, cwd=folder)
    if ready and process.stdout.readline() == READY:
        ready()
        process.stdin.write("go\n")
        process.stdin.flush()
    peak, done = 0, 0
    while not done:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = max([peak] + [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")])
        except OSError:
            pass
        done, status, used = os.wait4(process.pid, os.WNOHANG)
        if not done:
            wait(process.pid, 0.005)
    wall, cpu, kernel = time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_stime
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} ended with {process.returncode}")
    return wall, cpu, kernel, peak / 1024, process.stdout.read()


def wait(pid, seconds):
    """Waits until the process ends, and not longer than so many seconds."""
    if not hasattr(os, "pidfd_open"):
        time.sleep(seconds)
        return
    file = os.pidfd_open(pid)
    try:
        select.select([file], [], [], seconds)
    finally:
        os.close(file)


def settle(folder, inputs, megabytes):
    """Makes all programs start alike: their inputs are in the page cache, and so much memory is at hand. Systems that give memory back
    which was not used for seconds, as virtual machines do, would else be slower for whoever comes after a pause."""
    block = bytearray(1 << 20)
    for path in inputs:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                with open(file, "rb", buffering=0) as source:
                    while source.readinto(block):
                        pass
    scratch = folder / "scratch"
    with open(scratch, "wb", buffering=0) as target:
        for _ in range(megabytes):
            target.write(block)
    scratch.unlink()


def clock(work):
    """Does the work of a peer once `measure` is ready; prints its seconds."""
    print(READY, end="", flush=True)
    sys.stdin.readline()
    used = lambda: resource.getrusage(resource.RUSAGE_SELF)
    start, before = time.perf_counter(), used()
    work()
    wall, after = time.perf_counter() - start, used()
    kernel = after.ru_stime - before.ru_stime
    print(wall, after.ru_utime - before.ru_utime + kernel, kernel)


def rotated(programs, turn):
    """The programs of a round: each begins with another one."""
    programs = list(programs)
    turn %= max(len(programs), 1)
    return programs[turn:] + programs[:turn]


def medians(runs):
    """The fields of a row that say what several runs took."""
    wall, cpu, kernel, peak = (statistics.median(column) for column in zip(*runs))
    return {"wall": round(wall, 4), "cpu": round(cpu, 4), "kernel": round(kernel, 4), "peak_mb": round(peak)}


def stolen():
    """Seconds of the processors since the start of the system: those that the host gave to others, and all. Zero where it is not known."""
    if not os.path.exists("/proc/stat"):
        return [0, 0]
    ticks = list(map(int, pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
    return [count / os.sysconf("SC_CLK_TCK") for count in (ticks[7], sum(ticks))]
