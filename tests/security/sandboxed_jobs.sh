# Ordinary jobs of developers, each in a directory of its own. Prints one line for each.
cat > /dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c
job() {
    name=$1 tool=$2
    if ! command -v "$tool" > /dev/null; then echo "missing $name"; return; fi
    mkdir -p "jobs/$name"
    if (cd "jobs/$name" && set -e && eval "$3") > "jobs/$name.log" 2>&1; then
        echo "ok $name"
    else
        echo "failed $name: $(tail -3 "jobs/$name.log" | tr '\n' ' ')"
    fi
}
job git-commit git 'echo a > ../../a; cd ../..; git add a; git commit -qm a'
job git-branch git 'cd ../..; git checkout -qb topic; git commit -q --allow-empty -m b; git checkout -q -'
job git-stash git 'cd ../..; echo b > a; git stash -q; git stash pop -q; git checkout -q a'
job git-rebase git 'cd ../..; git rebase -q topic'
job git-tag git 'cd ../..; git tag v1; git describe --tags'
job git-worktree git 'cd ../..; git worktree add -q jobs/tree topic; cd jobs/tree; echo c > c; git add c; git commit -qm c'
job git-gc git 'cd ../..; git gc -q'
job git-clone git 'git clone -q ../.. copy; cd copy; git commit -q --allow-empty -m d'
job git-init git 'git init -q new; cd new; git config user.name x; git commit -q --allow-empty -m e'
job git-merge git 'cd ../..; git merge -q topic'
job git-diff git 'cd ../..; echo d > a; git diff | grep -q +d; git restore a'
job make make 'printf "all:\n\techo built > out\n" > Makefile; make; test -s out'
job parallel-make make 'printf "all: a b c\na b c:\n\ttouch \$@\n" > Makefile; make -j3'
job compile-c cc 'echo "int main(void){return 0;}" > a.c; cc -o a a.c; ./a'
job cargo-build cargo 'cargo new -q --vcs none demo; cd demo; cargo build -q --offline'
job cargo-test cargo 'cargo new -q --vcs none --lib demo; cd demo; cargo test -q --offline'
job go-build go 'printf "module x\n" > go.mod; printf "package main\nfunc main(){}\n" > main.go; go build -o x .; ./x'
job npm-script npm 'echo "{\"name\":\"x\",\"version\":\"1.0.0\",\"scripts\":{\"t\":\"node -e 0\"}}" > package.json; npm run -s t'
job npm-pack npm 'echo "{\"name\":\"x\",\"version\":\"1.0.0\"}" > package.json; npm pack --silent'
job npm-install npm 'mkdir dep; echo "{\"name\":\"dep\",\"version\":\"1.0.0\"}" > dep/package.json; echo "{\"name\":\"x\",\"version\":\"1.0.0\"}" > package.json; npm install --offline --silent ./dep'
job node-files node 'node -e "fs.writeFileSync(\"a\", os.tmpdir())"'
job python-venv python3 'python3 -m venv --without-pip env; env/bin/python -c 0'
job python-compile python3 'echo "print(1)" > a.py; python3 -m py_compile a.py'
job unittest python3 'printf "import unittest\nclass T(unittest.TestCase):\n def test(self): pass\nunittest.main()\n" > t.py; python3 t.py'
job multiprocessing python3 'printf "import multiprocessing as m\nif __name__==\"__main__\":\n with m.Pool(2) as p: p.map(abs,[1])\n" > a.py; python3 a.py'
job sqlite python3 'python3 -c "import sqlite3; c=sqlite3.connect(\"a.db\"); c.execute(\"create table t(a)\"); c.commit()"'
job dev-server python3 'python3 -c "
import http.server,threading,urllib.request
s=http.server.HTTPServer((\"127.0.0.1\",0),http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever,daemon=True).start()
o=urllib.request.build_opener(urllib.request.ProxyHandler({}))
o.open(\"http://127.0.0.1:%d/\"%s.server_port).read()"'
job unix-socket python3 'python3 -c "
import socket,tempfile,os
p=os.path.join(tempfile.mkdtemp(),\"s\")
s=socket.socket(socket.AF_UNIX); s.bind(p); s.listen()
c=socket.socket(socket.AF_UNIX); c.connect(p)"'
job abstract-socket python3 'python3 -c "
import socket
s=socket.socket(socket.AF_UNIX); s.bind(\"\0own-job\"); s.listen()
c=socket.socket(socket.AF_UNIX); c.connect(\"\0own-job\")"'
job shared-memory python3 'python3 -c "
from multiprocessing import shared_memory as m
s=m.SharedMemory(create=True,size=10); s.close(); s.unlink()"'
job pseudo-terminal python3 'python3 -c "import pty; assert pty.spawn([\"true\"]) == 0"'
job temporary-file mktemp 'f=$(mktemp); echo x > "$f"; mv "$f" here'
job big-temporary-file dd 'dd if=/dev/zero of=/tmp/big bs=1M count=32 status=none; rm /tmp/big'
job cache sh 'mkdir -p "$HOME/.cache/some-tool"; echo x > "$HOME/.cache/some-tool/file"'
job archive tar 'echo x > a; tar czf a.tgz a; tar xzf a.tgz'
job permissions chmod 'touch a; chmod 755 a; ln -s a b; ln a c; mv c d; rm d'
job processes sh 'sleep 30 & p=$!; kill $p; wait $p || true'
job process-list ps 'ps -e > list'
job find find 'find . -name "*.x"'
job parallel xargs 'seq 9 | xargs -P 4 -n 1 touch'
job perl perl 'perl -e "open(F,\">a\")"'
job sed sed 'echo a > a; sed -i s/a/b/ a; grep -q b a'
job timeout timeout 'timeout 5 true'
job file-lock flock 'flock lock true'
job background-shell bash 'bash -c "(sleep 1 &) ; true"'
job here-document bash 'bash -c "cat <<< x" > a'
job process-substitution bash 'bash -c "diff <(echo a) <(echo a)"'
job clock date 'date > a'
job users id 'id -un > a || id -u > a'
job disk-space df 'df . > a'
job random head 'head -c 10 /dev/urandom > a'
job null sh 'echo x > /dev/null; cat /dev/null > a'
