package recognise

// runtimes are the programs that are read, by base name. Commands that they do not
// list, such as start, attach, create and logs, name no program.
var runtimes = map[string]struct {
	name string
	root command
}{
	"docker": {"docker", engine(dockerGlobal, dockerRun, command{flags: dockerExec, agent: inContainer},
		map[string]command{"compose": compose, "sandbox": sandbox})},
	"docker-compose": {"docker", compose},
	"podman": {"podman", persistent(podmanGlobal, podmanRun, command{flags: podmanExec, agent: inContainer},
		map[string]command{"compose": compose})},
	"nerdctl": {"nerdctl", persistent(nerdctlGlobal, nerdctlRun, command{flags: nerdctlExec, agent: inNerdctl},
		map[string]command{"compose": nerdctlComposes})},
	"container": {"container", apple},
	"sbx":       {"sbx", sandbox},
}

// sandboxAgents are the agents that sbx itself knows. "shell" is none.
var sandboxAgents = map[string]bool{
	"claude": true, "codex": true, "copilot": true, "cursor": true, "docker-agent": true,
	"droid": true, "gemini": true, "kiro": true, "opencode": true,
}

// engine is the grammar of docker: run and exec, also below "container".
func engine(global, run flagSet, exec command, more map[string]command) command {
	below := map[string]command{
		"run":  {flags: run, agent: inImage},
		"exec": exec,
	}
	root := command{flags: global, below: map[string]command{"container": {flags: flags("--help", ""), below: below}}}
	for _, m := range []map[string]command{below, more} {
		for name, c := range m {
			root.below[name] = c
		}
	}
	return root
}

// persistent is engine where global flags may also stand behind a subcommand.
func persistent(global, run flagSet, exec command, more map[string]command) command {
	exec.flags = global.and(exec.flags)
	root := engine(global, global.and(run), exec, more)
	group := root.below["container"]
	group.flags = global
	root.below["container"] = group
	return root
}

var compose = command{
	flags: composeGlobal,
	below: map[string]command{
		"run":  {flags: composeRun, agent: inService},
		"exec": {flags: composeExec, agent: inContainer},
	},
}

var nerdctlComposes = command{
	flags: nerdctlGlobal.and(nerdctlCompose),
	below: map[string]command{
		"run":  {flags: nerdctlGlobal.and(nerdctlCompose).and(nerdctlComposeRun), agent: inImage},
		"exec": {flags: nerdctlGlobal.and(nerdctlCompose).and(nerdctlComposeExec), agent: inContainer},
	},
}

var apple = command{
	flags: flags("--debug -h/--help --version", ""), read: flagSet.apple,
	below: map[string]command{
		"run":  {flags: appleProcess.and(appleRun), read: flagSet.apple, agent: inImage},
		"exec": {flags: appleProcess, read: flagSet.apple, agent: inContainer},
	},
}

var sandbox = command{
	flags: flags("--cloud -D/--debug --help", ""),
	below: map[string]command{
		"run": {
			flags: flags("--cloud -D/--debug --help", "--branch --cpus --kit -m/--memory --name -t/--template --pull-template"),
			read:  flagSet.mixed, agent: inSandbox,
		},
		"exec": {flags: dockerExec.and(flags("--cloud -D/--debug", "")), agent: inContainer},
	},
}

// The flags below are those of docker 20.10 to 28.2, Compose 2.26 and later, podman 4.3
// to 5.4, and as they declare or describe them, of nerdctl 2, Apple's container and sbx;
// hidden ones included. Too many do no harm; one that is missing hides an agent.

var dockerGlobal = flags(
	"-D/--debug --tls --tlsverify -v/--version --help",
	"--config -c/--context -H/--host -l/--log-level --tlscacert --tlscert --tlskey")

var dockerRun = flags(
	`-d/--detach --disable-content-trust --help --init -i/--interactive --no-healthcheck --oom-kill-disable
	--privileged -P/--publish-all -q/--quiet --read-only --rm --sig-proxy -t/--tty --use-api-socket`,
	`--add-host --annotation -a/--attach --blkio-weight --blkio-weight-device --cap-add --cap-drop
	--cgroup-parent --cgroupns --cidfile --cpu-count --cpu-percent --cpu-period --cpu-quota --cpu-rt-period
	--cpu-rt-runtime -c/--cpu-shares --cpus --cpuset-cpus --cpuset-mems --detach-keys --device
	--device-cgroup-rule --device-read-bps --device-read-iops --device-write-bps --device-write-iops
	--dns --dns-opt --dns-option --dns-search --domainname --entrypoint -e/--env --env-file --expose --gpus
	--group-add --health-cmd --health-interval --health-retries --health-start-interval
	--health-start-period --health-timeout -h/--hostname --io-maxbandwidth --io-maxiops --ip --ip6 --ipc
	--isolation --kernel-memory -l/--label --label-file --link --link-local-ip --log-driver --log-opt
	--mac-address -m/--memory --memory-reservation --memory-swap --memory-swappiness --mount --name --net
	--network --net-alias --network-alias --oom-score-adj --pid --pids-limit --platform -p/--publish --pull
	--restart --runtime --security-opt --shm-size --stop-signal --stop-timeout --storage-opt --sysctl
	--tmpfs --ulimit -u/--user --userns --uts -v/--volume --volume-driver --volumes-from -w/--workdir`)

var dockerExec = flags(
	"-d/--detach --help -i/--interactive --privileged -t/--tty",
	"--detach-keys -e/--env --env-file -u/--user -w/--workdir")

var composeGlobal = flags(
	"--all-resources --compatibility --dry-run --help --no-ansi --verbose -v/--version",
	"--ansi --env-file -f/--file --parallel --profile --progress --project-directory -p/--project-name --workdir")

var composeRun = flags(
	`--build -d/--detach --dry-run --help -i/--interactive -T/--no-TTY --no-deps -q/--quiet --quiet-build
	--quiet-pull --remove-orphans --rm -P/--service-ports -t/--tty --use-aliases`,
	`--cap-add --cap-drop --entrypoint -e/--env --env-from-file -l/--label --name -p/--publish --pull
	-u/--user -v/--volume -w/--workdir`)

var composeExec = flags(
	"-d/--detach --dry-run --help -i/--interactive -T/--no-TTY --privileged -t/--tty",
	"-e/--env --index -u/--user -w/--workdir")

var podmanGlobal = flags(
	"--help --noout -r/--remote --syslog --trace --transient-store -v/--version",
	`--cgroup-manager --config --conmon -c/--connection --db-backend --events-backend --hooks-dir --identity
	--imagestore --log-level --module --namespace --network-cmd-path --network-config-dir --out --root
	--runroot --runtime --runtime-flag --ssh --storage-driver --storage-opt --tmpdir --url --volumepath`)

var podmanRun = dockerRun.and(flags(
	`--env-host --http-proxy --no-hostname --no-hosts --passwd --read-only-tmpfs --replace --rmi --rootfs
	--tls-verify --unsetenv-all`,
	`--arch --authfile --cert-dir --cgroup-conf --cgroups --chrootdirs --conmon-pidfile --creds
	--decryption-key --env-merge --gidmap --group-entry --health-log-destination --health-max-log-count
	--health-max-log-size --health-on-failure --health-startup-cmd --health-startup-interval
	--health-startup-retries --health-startup-success --health-startup-timeout --hosts-file --hostuser
	--image-volume --init-ctr --init-path --os --passwd-entry --personality --pidfile --pod --pod-id-file
	--preserve-fd --preserve-fds --rdt-class --requires --retry --retry-delay --sdnotify --seccomp-policy
	--secret --shm-size-systemd --subgidname --subuidname --systemd --timeout --tz --uidmap --umask
	--unsetenv --variant`))

var podmanExec = dockerExec.and(flags("-l/--latest", "--cidfile --preserve-fd --preserve-fds"))

var nerdctlGlobal = flags(
	"--debug --debug-full --experimental --help --insecure-registry --kube-hide-dupe -v/--version",
	`-a/--address --bridge-ip --cdi-spec-dirs --cgroup-manager --cni-netconfpath --cni-path --data-root -H/--host
	--host-gateway-ip --hosts-dir -n/--namespace --snapshotter --storage-driver`)

var nerdctlRun = dockerRun.and(flags(
	"--insecure-registry --rootfs",
	`--bandwidth --cgroup-conf --cosign-certificate-identity --cosign-certificate-identity-regexp
	--cosign-certificate-oidc-issuer --cosign-certificate-oidc-issuer-regexp --cosign-key --init-binary
	--ipfs-address --log-uri --pidfile --rdt-class --soci-index-digest --systemd --umask --verify`))

var nerdctlExec = dockerExec

var nerdctlCompose = flags("", "--env-file -f/--file --ipfs-address --profile --project-directory -p/--project-name")

var nerdctlComposeRun = flags(
	`--build -d/--detach -i/--interactive --no-build --no-color --no-deps --no-log-prefix --quiet-pull
	--remove-orphans --rm --service-ports`,
	"--entrypoint -e/--env -l/--label --name --publish -u/--user -v/--volume -w/--workdir")

var nerdctlComposeExec = flags(
	"-d/--detach -i/--interactive --privileged -T/--no-TTY -t/--tty",
	"-e/--env --index -u/--user -w/--workdir")

// appleProcess are the flags that run and exec share. -h is help here.
var appleProcess = flags(
	"--debug -d/--detach -h/--help -i/--interactive -t/--tty",
	"-e/--env --env-file --gid --uid --ulimit -u/--user --cwd/-w/--workdir")

var appleRun = flags(
	"--init --no-dns --read-only --remove/--rm --rosetta --ssh --virtualization",
	`-a/--arch --cap-add --cap-drop --cidfile -c/--cpus --dns --dns-domain --dns-option --dns-search
	--entrypoint --init-image -k/--kernel -l/--label --max-concurrent-downloads -m/--memory --mount --name
	--network --os --platform --progress -p/--publish --publish-socket --runtime --scheme --shm-size
	--tmpfs -v/--volume`)
