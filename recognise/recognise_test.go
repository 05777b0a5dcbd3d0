package recognise

import (
	"strings"
	"testing"
)

// in makes the argv of a script in a container.
func in(script string) []string { return []string{"docker", "run", "img", "sh", "-c", script} }

// args makes an argv of words without blanks.
func args(line string) []string { return strings.Fields(line) }

// cases are command lines with the agent/runtime they must be, "" for none. The
// names begin with the number of the case in the rules that this package follows.
var cases = []struct {
	name string
	argv []string
	want string
}{
	{"1 after the image", args("docker run -it --rm img claude"), "claude/docker"},
	{"2 podman", args("podman run -it img codex"), "codex/podman"},
	{"3 sbx", args("sbx run claude"), "claude/sbx"},
	{"4 a script for an entrypoint", append(args("docker run -it --entrypoint bash img -lc"), "mise install; claude --effort medium"), "claude/docker"},
	{"5 an image", args("docker run -it claude"), ""},
	{"6 an image with a program", args("docker run -it claude bash"), ""},
	{"7 a name", args("docker run -it --name claude img bash"), ""},
	{"8 a variable", args("docker run -e AGENT=claude img bash"), ""},
	{"9 a volume", args("docker run -v /src/claude:/claude -w /claude img bash"), ""},
	{"10 a dot directory", args("docker run -v /h/.claude:/root/.claude img bash"), ""},
	{"11 an argument", args("docker run img npm install claude-code"), ""},
	{"12 echo", append(args("docker run img bash -c"), `echo "claude"`), ""},
	{"13 a comment", append(args("docker run img bash -c"), "sleep 1 # then claude"), ""},
	{"14 quotes in a comment", in("# don't; \"half\nclaude"), "claude/docker"},
	{"15 a line that goes on", in("mise install && \\\nclaude"), "claude/docker"},
	{"16 & in a value", args("docker run -e DB=postgres://u:p@h/d?a=1&b=2 img claude"), "claude/docker"},
	{"17 blanks in a value", []string{"docker", "run", "-e", "MOTD=hello big world", "img", "claude"}, "claude/docker"},
	{"19 a shell by hand", args("docker exec -it box bash"), ""},
	{"20 a container", args("docker exec -it claude bash"), ""},
	{"21 exec", args("docker exec -it box claude"), "claude/docker"},
	{"22 exec in one of that name", args("docker exec -it claude claude --resume x"), "claude/docker"},
	{"23 the latest container", args("podman exec -l claude"), "claude/podman"},
	{"24 a shell in the latest", args("podman exec -it -l bash"), ""},
	{"25 a user", args("docker exec -u claude -w /claude box bash"), ""},
	{"26 a path", args("docker run img /usr/bin/claude"), "claude/docker"},
	{"28 ls", args("docker run img ls /root/.claude"), ""},
	{"29 cat", args("docker run img cat /usr/bin/claude"), ""},
	{"30 a cluster", args("docker run -itv /a:/b img claude"), "claude/docker"},
	{"30 a cluster with its value", args("docker run -itv/a:/b img claude"), "claude/docker"},
	{"32 a joined value", args("docker run -eAGENT=claude img bash"), ""},
	{"33 a short flag with =", args("docker run -u=root img claude"), "claude/docker"},
	{"34 a boolean with =", args("docker run --rm=false img claude"), "claude/docker"},
	{"34 a boolean eats no word", args("docker run --rm false claude"), "claude/docker"},
	{"34 a boolean in a cluster with =", args("docker run -it=true img claude"), "claude/docker"},
	{"34 a boolean with = and more letters", args("docker run -t=1P img claude"), ""},
	{"34 a boolean with = and nothing", args("docker run --rm= img claude"), ""},
	{"34 a boolean with another word", args("docker run --tty=yes img claude"), ""},
	{"34 exec's boolean eats no word", args("docker exec --privileged false claude"), "claude/docker"},
	{"34 a value that is = alone", args("docker run -u= img claude"), "claude/docker"},
	{"34 a value without end", args("docker run -tu"), ""},
	{"34 a value that takes the image", args("docker run -u img claude"), ""},
	{"34 a value with two =", args("docker run -e=A=B img claude"), "claude/docker"},
	{"36 a name with =", args("docker run --name=claude img bash"), ""},
	{"37 -- before the image", args("docker run -- img claude"), "claude/docker"},
	{"38 -- after the image", args("docker run img -- claude"), ""},
	{"40 no program", args("docker run img"), ""},
	{"41 no image", args("docker run"), ""},
	{"42 a host name", args("docker run -h claude img bash"), ""},
	{"44 global flags", args("docker -H unix:///x --context claude run img codex"), "codex/docker"},
	{"45 container run", args("docker container run img claude"), "claude/docker"},
	{"46 container exec", args("docker container exec box claude"), "claude/docker"},
	{"48 an entrypoint", args("docker run --entrypoint=/opt/bin/claude img --resume abc"), "claude/docker"},
	{"49 an empty entrypoint", []string{"docker", "run", "--entrypoint", "", "img", "claude"}, "claude/docker"},
	{"49 the last entrypoint", args("docker run --entrypoint claude --entrypoint= img codex"), "codex/docker"},
	{"50 an argument of an entrypoint", args("docker run --entrypoint npm img claude"), ""},
	{"52 a file for an entrypoint", args("docker run --entrypoint bash img claude"), ""},
	{"52 a list for an entrypoint", []string{"podman", "run", "--entrypoint", `["env","claude"]`, "img"}, "claude/podman"},
	{"53 an unknown flag", args("docker run --brand-new x img claude"), ""},
	{"53 a shortened flag", args("docker run --nam x img claude"), ""},
	{"54 detached", args("docker run -d img claude"), ""},
	{"54 detached in a cluster", args("docker exec -itd box claude"), ""},
	{"54 not detached", args("docker run --detach=false img claude"), "claude/docker"},
	{"56 start", args("docker start -ai claude"), ""},
	{"56 attach", args("docker attach claude"), ""},
	{"56 logs", args("docker logs -f claude"), ""},
	{"56 create", args("docker create img claude"), ""},
	{"57 compose run", args("docker compose run --rm app claude"), "claude/docker"},
	{"57 compose run, standing alone", args("docker-compose -f a.yaml run --rm app claude"), "claude/docker"},
	{"57 compose exec", args("docker compose -p claude exec -it app codex"), "codex/docker"},
	{"57 compose and an entrypoint of two words", []string{"docker", "compose", "run", "--entrypoint", "nice claude", "app"}, "claude/docker"},
	{"57 compose, tried and not run", args("docker compose --dry-run exec app claude"), ""},
	{"57 podman compose", args("podman compose exec app claude"), "claude/podman"},
	{"58 a service", args("docker compose run claude"), ""},
	{"60 docker sandbox", args("docker sandbox run claude ."), "claude/docker"},
	{"61 the program's path", args("/opt/homebrew/bin/docker run img claude"), "claude/docker"},
	{"61 on Windows", []string{`C:\bin\docker.exe`, "run", "img", "claude"}, "claude/docker"},
	{"62 cd", in("cd /w && claude"), "claude/docker"},
	{"64 a redirection first", in(">/tmp/o claude"), "claude/docker"},
	{"64 an assignment first", in("A=1 B='x y' claude"), "claude/docker"},
	{"65 exec", in("exec claude --x"), "claude/docker"},
	{"66 $0", append(args("docker run img bash -c"), "echo hi", "claude"), ""},
	{"68 a here document", in("cat <<EOF\nclaude\nEOF"), ""},
	{"69 words of a case", in("case claude in claude) echo m;; esac"), ""},
	{"69 a command of a case", in("case x in claude) claude;; esac"), "claude/docker"},
	{"70 words of a for", in("for c in claude; do echo $c; done"), ""},
	{"72 a pipe", in("true | claude -p"), "claude/docker"},
	{"73 a substitution", in("a=$(claude -p x); echo $a"), ""},
	{"73 backquotes", in("echo `claude`"), ""},
	{"74 a comment after ;", in("true;#claude"), ""},
	{"76 a comment does not go on", in("# note \\\nclaude"), "claude/docker"},
	{"76 a comment behind a word does not either", in("mise install # note \\\nclaude"), "claude/docker"},
	{"76 a comment behind quotes", in("echo 'it' \"is\" \\# # note \\\nclaude"), "claude/docker"},
	{"76 no comment, in quotes", in("echo ' # \\\n' \" # \\\n\" claude"), ""},
	{"76 no comment, in a word", in("echo a#b \\\nclaude"), ""},
	{"76 no comment, behind a backslash", in("echo \\# \\\nclaude"), ""},
	{"77 a word that goes on", in("cl\\\naude"), "claude/docker"},
	{"78 a quoted part", in("'cla'ude"), "claude/docker"},
	{"78 a backslash", in(`\claude`), "claude/docker"},
	{"78 double quotes", in("\"clau\\\nde\""), "claude/docker"},
	{"78 a backslash in double quotes", in(`"\claude"`), ""},
	{"80 # in quotes", in(`echo "# x"; claude`), "claude/docker"},
	{"81 a cluster with o", args("docker run img bash -euo pipefail -c claude"), "claude/docker"},
	{"81 a cluster with o and c", args("docker run img bash -ceuo pipefail claude"), "claude/docker"},
	{"82 -c first", args("docker run img bash -c -l claude"), "claude/docker"},
	{"82 -ce", args("docker run img bash -ce claude"), "claude/docker"},
	{"82 -O", args("docker run img bash -O extglob -c claude"), "claude/docker"},
	{"82 +O", args("docker run img bash +O extglob -c claude"), "claude/docker"},
	{"82 --norc", args("docker run img bash --norc -c claude"), "claude/docker"},
	{"82 --rcfile", args("docker run img bash --rcfile claude -c true"), ""},
	{"82 -c --", args("docker run img sh -c -- claude"), "claude/docker"},
	{"82 read, not run", args("docker run img sh -nc claude"), ""},
	{"84 a file", args("docker run img bash run.sh claude"), ""},
	{"85 which", in("which claude"), ""},
	{"85 command -v", in("command -v claude"), ""},
	{"85 command", in("command claude"), "claude/docker"},
	{"86 an address and a directory", in("git clone https://h/claude && cd claude"), ""},
	{"88 a script that goes on", in("claude; bash"), "claude/docker"},
	{"89 another name", in("claude-code; myclaude; Claude; claude.sh"), ""},
	{"89 another name, without a shell", args("docker run img claude-code"), ""},
	{"90 env", args("docker run img env FOO=1 claude"), "claude/docker"},
	{"90 env with flags", args("docker run img env -i -u claude - A=b codex"), "codex/docker"},
	{"90 env that splits", []string{"docker", "run", "img", "env", "-S", "x claude"}, ""},
	{"90 env with a variable", in(`env A="$B" claude`), "claude/docker"},
	{"91 mise", args("docker run img mise exec node@22 -- claude"), "claude/docker"},
	{"91 mise x", args("docker run img mise x -- codex"), "codex/docker"},
	{"91 mise use", args("docker run img mise use -- claude"), ""},
	{"91 tini", args("docker run img /usr/bin/tini -g -- claude"), "claude/docker"},
	{"91 dumb-init", args("docker run img dumb-init claude"), "claude/docker"},
	{"91 gosu", args("docker run img gosu claude codex"), "codex/docker"},
	{"91 su-exec", args("docker run img su-exec claude"), ""},
	{"91 nohup, nice, setsid and time", args("docker run img nohup nice -n 5 setsid -w time -p claude"), "claude/docker"},
	{"91 nice -5", args("docker run img nice -5 claude"), "claude/docker"},
	{"91 time in bash", append(args("docker run img bash -c"), "time claude"), "claude/docker"},
	{"91 a shell behind a wrapper", args("docker run img tini -- bash -lc claude"), "claude/docker"},
	{"91 a shell in a shell", in(`exec bash -lc "exec claude"`), "claude/docker"},
	{"92 npx", args("docker run node npx @anthropic-ai/claude-code"), ""},
	{"92 npx claude", args("docker run node npx claude"), ""},
	{"93 sudo", args("docker run img sudo -u dev claude"), ""},
	{"94 sudo in front", args("sudo docker run img claude"), ""},
	{"96 a sandbox's name", args("sbx run --name claude codex"), "codex/sbx"},
	{"97 a sandbox's arguments", args("sbx run claude . /docs:ro -- --continue"), "claude/sbx"},
	{"98 a flag after the agent", args("sbx run codex --name claude"), "codex/sbx"},
	{"98 an unknown flag after the agent", args("sbx run codex --new claude"), ""},
	{"100 a sandbox", args("sbx run my-box"), ""},
	{"100 a sandbox with an agent's name in it", args("sbx run claude-myrepo"), ""},
	{"100 an agent that sbx has not", args("sbx run pi"), ""},
	{"101 a shell", args("sbx run shell"), ""},
	{"101 only arguments", args("sbx run -- claude"), ""},
	{"102 sbx create", args("sbx create claude ."), ""},
	{"102 sbx", args("sbx"), ""},
	{"102 sbx rm", args("sbx rm claude"), ""},
	{"104 sbx exec", args("sbx exec -it box claude"), "claude/sbx"},
	{"105 Apple's container", args("container run -it img claude"), "claude/container"},
	{"106 its flags", args("container run -a arm64 --cwd /claude --ssh img claude"), "claude/container"},
	{"106 -h is help there", args("container run -h img claude"), ""},
	{"106 a boolean with =", args("container run --rm=true img claude"), ""},
	{"106 a value in a cluster", args("container run -itv /a:/b img claude"), ""},
	{"108 its exec", args("container exec -it --uid 1000 claude bash"), ""},
	{"109 its exec with an agent", args("container exec -it box codex"), "codex/container"},
	{"110 nerdctl", args("nerdctl -n k8s.io run -it img claude"), "claude/nerdctl"},
	{"110 nerdctl's --systemd takes a value", args("nerdctl run --systemd claude img codex"), "codex/nerdctl"},
	{"110 nerdctl exec", args("nerdctl exec -it box claude"), "claude/nerdctl"},
	{"110 nerdctl exec drops a --", args("nerdctl exec box -- claude"), "claude/nerdctl"},
	{"110 nerdctl compose run", args("nerdctl compose -f a.yaml run --rm -p proj app claude"), "claude/nerdctl"},
	{"110 nerdctl compose run with an entrypoint", args("nerdctl compose run --entrypoint claude app -p x"), "claude/nerdctl"},
	{"110 nerdctl compose exec", args("nerdctl --debug compose exec -T claude codex"), "codex/nerdctl"},
	{"112 podman -c", args("podman -c claude run img codex"), "codex/podman"},
	{"113 podman run -c", args("podman run -c 512 img codex"), "codex/podman"},
	{"113 podman's global flag behind run", args("podman container run --log-level debug img codex"), "codex/podman"},
	{"114 a pod", args("podman run --pod claude --systemd always img bash"), ""},
	{"116 a directory for an image", args("podman run --rootfs /srv/root claude"), "claude/podman"},

	{"an expansion before the last slash", in(`"$HOME/.local/bin/claude" --x`), "claude/docker"},
	{"an expansion behind it", in(`bin/"$A"claude`), ""},
	{"an expansion for a program", in(`$SUDO claude`), ""},
	{"the arguments of a script", append(args("docker run img sh -c"), `exec "$@"`, "sh", "claude"), ""},
	{"eval", in("eval claude"), ""},
	{"a function of that name", in("claude() { true; }; claude"), ""},
	{"a function that is called", in("go() { claude; }; go"), "claude/docker"},
	{"a function that is not", in("go() { claude; }; true"), ""},
	{"a function that calls itself", in("go() { go; }; go; codex"), "codex/docker"},
	{"the first in reading order", in("if a; then b; elif c; then codex; else claude; fi"), "codex/docker"},
	{"compound commands", in("! { while false; do ( until true | codex; do :; done ); done; }"), "codex/docker"},
	{"an array", append(args("docker run img bash -c"), "a=(claude); echo ${a[@]}"), ""},
	{"an array in sh", in("a=(x); claude"), "claude/docker"},
	{"brackets of dash", in("((claude))"), "claude/docker"},
	{"an open quote", in("claude\necho 'x"), "claude/docker"},
	{"an open quote around it", in("echo 'x\nclaude"), ""},
	{"busybox", args("docker run img busybox sh -c claude"), "claude/docker"},
	{"not a runtime", args("lxc run img claude"), ""},
	{"nothing", nil, ""},
}

func TestRecognise(t *testing.T) {
	// An agent must be recognised as the program that a container runs, and nowhere else.
	for _, c := range cases {
		if got := named(Recognise(c.argv)); got != c.want {
			t.Errorf("%s: %q is %q, want %q", c.name, c.argv, got, c.want)
		}
	}
}

func TestRecogniseLine(t *testing.T) {
	// A line of ps must be read word by word, and what follows a shell's -c as its script.
	for line, want := range map[string]string{
		"docker run -e MOTD=hello big world img claude":     "", // 18
		"docker run -it img claude --model opus":            "claude/docker",
		"docker run img bash -lc mise install; claude":      "claude/docker",
		"docker run img bash -c echo hi claude":             "",
		"docker run img bash -lc cd /w && exec claude -p x": "claude/docker",
		"": "",
	} {
		if got := named(RecogniseLine(line)); got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}

// named joins what Recognise returns, and keeps it to its promise.
func named(agent, runtime string, ok bool) string {
	switch {
	case ok != (agent != "") || ok != (runtime != ""):
		return "half an answer: " + agent + "/" + runtime
	case !ok:
		return ""
	}
	return agent + "/" + runtime
}
