"""How a program is measured."""
import os, pathlib, subprocess, sys, time


def measure(words, folder=None):
    """Wall seconds, processor seconds and peak MB of a process. A peer, which is a Python program, prints its own seconds."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=folder)
    peak, done = 0, 0
    while not done:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = max([peak] + [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")])
        except OSError:
            pass
        done, status, used = os.wait4(process.pid, os.WNOHANG)
        time.sleep(0 if done else 0.005)
    wall, cpu = time.perf_counter() - start, used.ru_utime + used.ru_stime
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} ended with {process.returncode}")
    if words[0] == sys.executable:
        wall, cpu = map(float, process.stdout.read().split())
    return wall, cpu, peak / 1024
